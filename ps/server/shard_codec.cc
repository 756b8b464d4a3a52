#include "ps/server/shard_codec.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "common/float_loops.h"
#include "common/os/flush_denormals.h"
#include "ps/server/shard_state.h"

namespace syncopate::ps {

ShardCodec::ShardCodec(const Options& options, WeightsPool::Allocate allocate)
    : options_(options), codec_(options.compression.codec), pool_(std::move(allocate), nullptr) {}

void ShardCodec::know_tensors(TensorRanges tensors) { codec_ = Codec(options_.compression.codec, std::move(tensors)); }

Result<std::span<const float>> ShardCodec::decode(const PushName& push, std::span<const std::byte> payload,
                                                  std::size_t elements) {
  AlignedBuffer& gradient =
      options_.holds_gradients ? room(gradients_, push.worker, push.chunk) : room(gradients_, 0, 0);
  if (gradient.size() < elements) gradient = AlignedBuffer(elements);
  const std::span<float> values = gradient.span().first(elements);
  const Status status =
      codec_.decode(payload, codec_key(options_.compression, Direction::kToShard, push), values, push.begin);
  if (!status.ok()) return Status::invalid_argument(status.message());
  const std::size_t index = index_of(push.worker, push.chunk);
  if (epochs_.size() <= index) epochs_.resize(index + 1);
  epochs_[index] = codec_.epoch_of(payload.size(), elements, push.begin).value_or(0);
  return std::span<const float>(values);
}

void ShardCodec::sent_in_full(int worker, std::size_t chunk, std::span<const float> weights) {
  AlignedBuffer& mirror = room(mirrors_, worker, chunk);
  if (mirror.size() != weights.size()) mirror = AlignedBuffer(weights.size());
  std::ranges::copy(weights, mirror.data());
}

void ShardCodec::save(int worker, std::size_t chunk, std::size_t begin, TrainingState& state) const {
  const std::size_t index = index_of(worker, chunk);
  if (index < mirrors_.size()) state.put(shard_part::kMirror, begin, mirrors_[index].span());
}

Result<ShardCodec::Answer> ShardCodec::greet(int worker, std::size_t chunk, Range range, const TrainingState& state) {
  if (greetings_.size() <= chunk) greetings_.resize(chunk + 1);
  if (greetings_[chunk] == nullptr) {
    SYNCOPATE_ASSIGN_OR_RETURN(WeightsPool::Buffer* const buffer, pool_.acquire(range.size()));
    SYNCOPATE_RETURN_IF_ERROR(state.read(shard_part::kMirror, range, buffer->memory.first(range.size())));
    greetings_[chunk] = buffer;
  }
  const std::span<const float> weights = greetings_[chunk]->memory.first(range.size());
  sent_in_full(worker, chunk, weights);
  return Answer{std::as_bytes(weights), &greetings_[chunk]->pending};
}

Result<ShardCodec::Answer> ShardCodec::encode(const PushName& push, std::span<const float> weights) {
  const std::span<float> mirror = room(mirrors_, push.worker, push.chunk).span();
  assert(mirror.size() == weights.size());
  for (WeightsPool::Buffer* const greeting : std::exchange(greetings_, {})) {
    if (greeting != nullptr) pool_.give_up(greeting);
  }
  const std::size_t index = index_of(push.worker, push.chunk);
  codec_.begin_epoch(index < epochs_.size() ? epochs_[index] : 0);
  const std::size_t bytes = codec_.encoded_size(weights.size(), push.begin);
  SYNCOPATE_ASSIGN_OR_RETURN(WeightsPool::Buffer* const buffer,
                             pool_.acquire((bytes + sizeof(float) - 1) / sizeof(float)));
  pool_.give_up(buffer);  // handed out again only when it has been read
  const std::span<std::byte> payload = std::as_writable_bytes(buffer->memory).first(bytes);

  const FlushDenormals flush;  // as the worker does
  if (difference_.size() < weights.size()) difference_ = AlignedBuffer(weights.size());
  const std::span<float> difference = difference_.span().first(weights.size());
  subtract(weights.data(), mirror.data(), difference.data(), weights.size());
  const std::uint64_t key = codec_key(options_.compression, Direction::kToWorker, push);
  codec_.encode(difference, key, payload, push.begin);
  const Status status = codec_.add_decoded(payload, key, mirror, push.begin);
  assert(status.ok());
  return Answer{payload, &buffer->pending};
}

AlignedBuffer& ShardCodec::room(Rooms& rooms, int worker, std::size_t chunk) {
  const std::size_t index = index_of(worker, chunk);
  if (rooms.size() <= index) rooms.resize(index + 1);
  return rooms[index];
}

}  // namespace syncopate::ps
