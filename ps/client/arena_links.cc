#include "ps/client/arena_links.h"

#include <algorithm>
#include <functional>

#include "common/hash.h"

namespace syncopate::ps {

std::vector<Range> ArenaLinks::ranges() const {
  std::vector<Range> ranges;
  for (const ChunkLink& chunk : chunks) ranges.push_back(chunk.range);
  return ranges;
}

std::size_t ArenaLinks::size_of(const ShardLink& shard) const {
  std::size_t size = 0;
  for (const std::size_t bucket : shard.buckets) size += chunks[bucket].range.size();
  return size;
}

std::int64_t ArenaLinks::least_answered() const {
  const auto least = std::ranges::min_element(chunks, {}, &ChunkLink::answered);
  return least == chunks.end() ? 0 : least->answered;
}

ArenaLinks arena_links(const ParamLayout& layout, std::size_t shards, const Sharding& sharding) {
  const ShardMap map = shard_map(layout, shards, sharding);
  ArenaLinks links;
  links.shards.resize(shards);
  Fnv hash;
  hash.add(layout.hash());
  hash.add(map.hash());
  links.hash = hash.value();
  for (std::size_t shard = 0; shard < shards; ++shard) {
    for (std::size_t number = 0; number < map.chunks[shard].size(); ++number) {
      links.chunks.push_back({.shard = static_cast<int>(shard), .number = number, .range = map.chunks[shard][number]});
    }
    links.shards[shard].buckets.resize(map.chunks[shard].size());
  }
  std::ranges::sort(links.chunks, std::greater(), [](const ChunkLink& chunk) { return chunk.range.begin; });
  for (std::size_t bucket = 0; bucket < links.chunks.size(); ++bucket) {
    const ChunkLink& chunk = links.chunks[bucket];
    links.shards[static_cast<std::size_t>(chunk.shard)].buckets[chunk.number] = bucket;
  }
  return links;
}

}  // namespace syncopate::ps
