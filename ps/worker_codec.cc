#include "ps/worker_codec.h"

#include <utility>

#include "common/flush_denormals.h"

namespace syncopate::ps {
namespace {

// Of each encoding, so that a room begins on a cache line.
constexpr std::size_t kRoomAlignment = 64;

std::size_t room_for(std::size_t bytes) { return (bytes + kRoomAlignment - 1) / kRoomAlignment * kRoomAlignment; }

}  // namespace

WorkerCodec::WorkerCodec(const Compression& compression, const Clock& clock)
    : compression_(compression), clock_(clock), codec_(compression.codec) {}

Status WorkerCodec::allocate(Transport& transport, std::span<const Range> buckets, std::size_t arena_size,
                             std::size_t slots) {
  buckets_.assign(buckets.begin(), buckets.end());
  slots_ = slots;
  if (needs_error_feedback(compression_.codec.kind)) feedback_.emplace(compression_.codec, arena_size);
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
  if (feedback_) {
    feedback_->encode(buckets_[bucket], gradient, key, room);
  } else {
    codec_.encode(gradient, key, room);
  }
  time_ += clock_.now() - begin;
  return room;
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
