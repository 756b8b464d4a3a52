#include "ps/client/chunk_reader.h"

#include <algorithm>

namespace syncopate::ps {

Status ChunkReader::begin(std::span<float> weights, TrainingState& state) {
  weights_ = weights;
  state_ = &state;
  ++reads_;
  chunk_.assign(links_.shards.size(), 0);
  for (int shard = 0; shard < sender_.group().shards(); ++shard) SYNCOPATE_RETURN_IF_ERROR(ask(shard));
  return Status();
}

Status ChunkReader::ask(int shard) {
  if (!awaits(shard)) return Status();
  wire::ReadChunk& read = *sender_.header().mutable_read_chunk();
  read.set_chunk(chunk_[static_cast<std::size_t>(shard)]);
  read.set_read(reads_);
  return sender_.send(shard, {}, nullptr);
}

bool ChunkReader::awaits(int shard) const {
  const auto number = static_cast<std::size_t>(shard);
  return number < chunk_.size() && chunk_[number] < links_.shards[number].buckets.size();
}

bool ChunkReader::is_due() const {
  for (int shard = 0; shard < sender_.group().shards(); ++shard) {
    if (awaits(shard)) return true;
  }
  return false;
}

Result<bool> ChunkReader::accept(const wire::ChunkRead& read, const Message& message, int shard) {
  const auto number = static_cast<std::size_t>(shard);
  if (!awaits(shard) || read.read() != reads_ || read.chunk() != chunk_[number]) return false;
  ChunkLink& chunk = links_.chunks[links_.shards[number].buckets[read.chunk()]];
  const std::size_t size = chunk.range.size();
  const std::size_t parts = message.payload().size() / (size * sizeof(float));
  const std::size_t memories = parts - (read.has_weights() && parts > 0 ? 1 : 0);
  if (parts * size * sizeof(float) != message.payload().size() || (read.has_weights() && parts == 0) ||
      memories > std::size(state_part::kOptimizer) || read.version() < chunk.version) {
    return false;
  }
  std::span<const float> values = message.floats();
  if (read.has_weights()) {
    std::ranges::copy(values.first(size), slice(weights_, chunk.range).begin());
    chunk.version = read.version();
    values = values.subspan(size);
  }
  for (std::size_t memory = 0; memory < memories; ++memory) {
    state_->put(state_part::kOptimizer[memory], chunk.range.begin, values.subspan(memory * size, size));
  }
  ++chunk_[number];
  SYNCOPATE_RETURN_IF_ERROR(ask(shard));
  return true;
}

}  // namespace syncopate::ps
