#include "ps/worker_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/flush_denormals.h"

namespace syncopate::ps {
namespace {

// Of each encoding, so that a room begins on a cache line.
constexpr std::size_t kRoomAlignment = 64;

std::size_t room_for(std::size_t bytes) { return (bytes + kRoomAlignment - 1) / kRoomAlignment * kRoomAlignment; }

std::string before_name(int worker) { return fmt::format("residual_before.worker{}", worker); }
std::string clocks_name(int worker) { return fmt::format("residual_clocks.worker{}", worker); }

}  // namespace

WorkerCodec::WorkerCodec(const Compression& compression, const Clock& clock)
    : compression_(compression), clock_(clock), codec_(compression.codec) {}

Status WorkerCodec::allocate(Transport& transport, std::span<const Range> buckets, std::size_t arena_size,
                             std::size_t slots, bool undoes_pushes) {
  buckets_.assign(buckets.begin(), buckets.end());
  slots_ = slots;
  clocks_.resize(buckets.size());
  if (needs_error_feedback(compression_.codec.kind)) feedback_.emplace(compression_.codec, arena_size);
  if (feedback_ && undoes_pushes) before_ = AlignedBuffer(arena_size);
  std::size_t bytes = 0;
  for (const Range& bucket : buckets) bytes += slots * room_for(codec_.encoded_size(bucket.size()));
  Result<std::span<std::byte>> memory = transport.allocate(bytes);
  if (!memory.ok()) return memory.status();
  std::span<std::byte> left = *memory;
  for (const Range& bucket : buckets) {
    const std::size_t encoded = codec_.encoded_size(bucket.size());
    for (std::size_t slot = 0; slot < slots; ++slot) {
      rooms_.push_back(left.first(encoded));
      left = left.subspan(room_for(encoded));
    }
  }
  return Status();
}

std::span<const std::byte> WorkerCodec::encode(const PushName& push, std::size_t bucket, std::size_t slot,
                                               std::span<const float> gradient) {
  const TimePoint begin = clock_.now();
  const std::uint64_t key = codec_key(compression_, Travels::kToShard, push);
  const std::span<std::byte> room = rooms_[bucket * slots_ + slot];
  clocks_[bucket] = push.clock;
  if (before_.size() > 0) {
    std::ranges::copy(slice(feedback_->residual(), buckets_[bucket]), slice(before_.span(), buckets_[bucket]).begin());
  }
  if (feedback_) {
    feedback_->encode(buckets_[bucket], gradient, key, room);
  } else {
    codec_.encode(gradient, key, room);
  }
  time_ += clock_.now() - begin;
  return room;
}

void WorkerCodec::save(int worker, TrainingState& state) const {
  if (!feedback_) return;
  std::vector<std::int64_t>& clocks = state.counts[clocks_name(worker)];
  clocks.clear();
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    const Range range = buckets_[bucket];
    state.put(state_part::residual_of(worker), range.begin, slice(feedback_->residual(), range));
    if (before_.size() > 0) state.put(before_name(worker), range.begin, slice(before_.span(), range));
    clocks.push_back(clocks_[bucket]);
  }
}

Status WorkerCodec::restore(int worker, const TrainingState& state) {
  const auto clocks = state.counts.find(clocks_name(worker));
  const std::string residual = state_part::residual_of(worker);
  for (std::size_t bucket = 0; bucket < buckets_.size() && feedback_; ++bucket) {
    const Range range = buckets_[bucket];
    // A worker that was not there has kept nothing back.
    if (state.covers(residual, range)) {
      SYNCOPATE_RETURN_IF_ERROR(state.read(residual, range, slice(feedback_->residual(), range)));
    }
    const bool has_before = clocks != state.counts.end() && clocks->second.size() == buckets_.size() &&
                            before_.size() > 0 && state.covers(before_name(worker), range);
    clocks_[bucket] = has_before ? clocks->second[bucket] : 0;
    if (!has_before) continue;
    SYNCOPATE_RETURN_IF_ERROR(state.read(before_name(worker), range, slice(before_.span(), range)));
  }
  return Status();
}

void WorkerCodec::take_up(std::size_t bucket, std::int64_t applied) {
  if (before_.size() == 0 || clocks_[bucket] <= applied) return;
  std::ranges::copy(slice(before_.span(), buckets_[bucket]), slice(feedback_->residual(), buckets_[bucket]).begin());
}

Status WorkerCodec::apply_answer(const PushName& push, std::span<const std::byte> payload, std::span<float> weights) {
  const FlushDenormals flush;  // as the shard does with its mirror
  const TimePoint begin = clock_.now();
  const Status status = codec_.add_decoded(payload, codec_key(compression_, Travels::kToWorker, push), weights);
  time_ += clock_.now() - begin;
  return status;
}

Duration WorkerCodec::take_time() { return std::exchange(time_, Duration::zero()); }

}  // namespace syncopate::ps
