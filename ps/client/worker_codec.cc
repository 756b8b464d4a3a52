#include "ps/client/worker_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/os/flush_denormals.h"

namespace syncopate::ps {
namespace {

// The alignment of each encoding, so that a slot begins on a cache line.
constexpr std::size_t kRoomAlignment = 64;

std::size_t room_for(std::size_t bytes) { return (bytes + kRoomAlignment - 1) / kRoomAlignment * kRoomAlignment; }

// In a TrainingState: as it is, and as it was before the last push.
struct Names {
  std::string now;
  std::string before;
};
Names residual_names(int worker) {
  return {state_part::residual_of(worker), fmt::format("residual_before.worker{}", worker)};
}
Names velocity_names(int worker) {
  return {fmt::format("velocity.worker{}", worker), fmt::format("velocity_before.worker{}", worker)};
}
std::string clocks_name(int worker) { return fmt::format("residual_clocks.worker{}", worker); }

}  // namespace

WorkerCodec::WorkerCodec(const Compression& compression, const Clock& clock)
    : compression_(compression), clock_(clock), codec_(compression.codec) {}

Status WorkerCodec::allocate(Transport& transport, std::span<const Range> buckets, std::size_t arena_size,
                             std::size_t slots, bool undoes_pushes, const TensorRanges& tensors) {
  codec_ = Codec(compression_.codec, tensors);
  buckets_.assign(buckets.begin(), buckets.end());
  slots_ = slots;
  clocks_.resize(buckets.size());
  if (needs_error_feedback(compression_.codec.kind)) feedback_.emplace(compression_.codec, arena_size, tensors);
  if (feedback_ && undoes_pushes) {
    before_ = AlignedBuffer(arena_size);
    velocity_before_ = AlignedBuffer(feedback_->velocity().size());
  }
  const auto largest = [&](const Range& bucket) { return codec_.largest_size(bucket.size(), bucket.begin); };
  std::size_t bytes = 0;
  for (const Range& bucket : buckets) bytes += slots * room_for(largest(bucket));
  SYNCOPATE_ASSIGN_OR_RETURN(std::span<std::byte> left, transport.allocate(bytes));
  for (const Range& bucket : buckets) {
    const std::size_t encoded = largest(bucket);
    for (std::size_t slot = 0; slot < slots; ++slot) {
      rooms_.push_back(left.first(encoded));
      left = left.subspan(room_for(encoded));
    }
  }
  return Status();
}

void WorkerCodec::begin_epoch(std::int64_t epoch) {
  codec_.begin_epoch(epoch);
  if (feedback_) feedback_->begin_epoch(epoch);
}

std::vector<WorkerCodec::Memory> WorkerCodec::memories(int worker) {
  const Names residual = residual_names(worker), velocity = velocity_names(worker);
  std::vector<Memory> memories{{residual.now, residual.before, feedback_->residual(), before_.span()}};
  if (feedback_->velocity().empty()) return memories;
  memories.push_back({velocity.now, velocity.before, feedback_->velocity(), velocity_before_.span()});
  return memories;
}

std::span<const std::byte> WorkerCodec::encode(const PushName& push, std::size_t bucket, std::size_t slot,
                                               std::span<const float> gradient) {
  const TimePoint begin = clock_.now();
  const std::uint64_t key = codec_key(compression_, Direction::kToShard, push);
  const Range range = buckets_[bucket];
  const std::span<std::byte> room =
      rooms_[bucket * slots_ + slot].first(codec_.encoded_size(range.size(), range.begin));
  clocks_[bucket] = push.clock;
  if (before_.size() > 0) {
    for (const Memory& memory : memories(push.worker)) {
      std::ranges::copy(slice(memory.values, range), slice(memory.before, range).begin());
    }
  }
  if (feedback_) {
    feedback_->encode(range, gradient, key, room);
  } else {
    codec_.encode(gradient, key, room, range.begin);
  }
  clock_.processed(Processing::kEncode, gradient.size_bytes());
  time_ += clock_.now() - begin;
  return room;
}

void WorkerCodec::save(int worker, TrainingState& state) const {
  if (!feedback_) return;
  const auto put = [&](const Names& names, Range range, std::span<const float> values, const AlignedBuffer& before) {
    if (values.empty()) return;
    state.put(names.now, range.begin, slice(values, range));
    if (before.size() > 0) state.put(names.before, range.begin, slice(before.span(), range));
  };
  for (const Range& range : buckets_) {
    put(residual_names(worker), range, feedback_->residual(), before_);
    put(velocity_names(worker), range, feedback_->velocity(), velocity_before_);
  }
  state.counts[clocks_name(worker)] = clocks_;
}

Status WorkerCodec::restore(int worker, const TrainingState& state) {
  if (!feedback_) return Status();
  const auto clocks = state.counts.find(clocks_name(worker));
  const bool has_clocks = clocks != state.counts.end() && clocks->second.size() == buckets_.size();
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    const Range range = buckets_[bucket];
    bool has_before = has_clocks && before_.size() > 0;
    for (const Memory& memory : memories(worker)) {
      // A worker that was not there has kept nothing back.
      if (state.covers(memory.name, range)) {
        SYNCOPATE_RETURN_IF_ERROR(state.read(memory.name, range, slice(memory.values, range)));
      }
      has_before = has_before && state.covers(memory.before_name, range);
      if (has_before) SYNCOPATE_RETURN_IF_ERROR(state.read(memory.before_name, range, slice(memory.before, range)));
    }
    clocks_[bucket] = has_before ? clocks->second[bucket] : 0;
  }
  return Status();
}

void WorkerCodec::take_up(int worker, std::size_t bucket, std::int64_t applied) {
  if (before_.size() == 0 || clocks_[bucket] <= applied) return;
  for (const Memory& memory : memories(worker)) {
    std::ranges::copy(slice(memory.before, buckets_[bucket]), slice(memory.values, buckets_[bucket]).begin());
  }
}

Status WorkerCodec::apply_answer(const PushName& push, std::span<const std::byte> payload, std::span<float> weights) {
  const FlushDenormals flush;  // as the shard does with its mirror
  const TimePoint begin = clock_.now();
  const Status status =
      codec_.add_decoded(payload, codec_key(compression_, Direction::kToWorker, push), weights, push.begin);
  clock_.processed(Processing::kDecode, weights.size_bytes());
  time_ += clock_.now() - begin;
  return status;
}

Duration WorkerCodec::take_time() { return std::exchange(time_, Duration::zero()); }

}  // namespace syncopate::ps
