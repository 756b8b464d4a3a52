#include "ps/sharding.h"

#include <algorithm>

#include "common/hash.h"

namespace syncopate::ps {
namespace {

// Appends `range` to `chunks`, cut so that no piece is above `largest` floats.
void cut(Range range, std::size_t largest, std::vector<Range>& chunks) {
  for (std::size_t begin = range.begin; begin < range.end; begin += largest) {
    chunks.push_back({begin, std::min(begin + largest, range.end)});
  }
}

std::size_t floats_in(std::size_t chunk_bytes) {
  const std::size_t floats = chunk_bytes / sizeof(float);
  return std::max(floats / kAlignment * kAlignment, kAlignment);
}

}  // namespace

std::uint64_t ShardMap::hash() const {
  Fnv hash;
  for (const std::vector<Range>& shard : chunks) {
    hash.add(shard.size());
    for (const Range& chunk : shard) {
      hash.add(chunk.begin);
      hash.add(chunk.end);
    }
  }
  return hash.value();
}

ShardMap shard_map(const ParamLayout& layout, std::size_t shards, const Sharding& sharding) {
  ShardMap map;
  map.chunks.resize(shards);
  const std::vector<Range> ranges = balanced_ranges(layout.size(), shards);
  for (std::size_t shard = 0; shard < shards; ++shard) {
    cut(ranges[shard], floats_in(sharding.chunk_bytes), map.chunks[shard]);
  }
  return map;
}

}  // namespace syncopate::ps
