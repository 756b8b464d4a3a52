// Sharding: which shard holds which part of the arena, and in which chunks it travels. Pure; both sides compute it from
// the same layout, and compare its hash when a worker joins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/param_layout.h"

namespace syncopate::ps {

enum class ShardingPolicy {
  kBalanced,  // equal ranges of the arena, in order; tensors may be split
};

struct Sharding {
  ShardingPolicy policy = ShardingPolicy::kBalanced;
  std::size_t chunk_bytes = 256 * 1024;  // the most that a chunk holds; at least one cache line
};

// The chunks of each shard: ranges of the arena in ascending order, none empty. All together they cover the arena
// without overlap; each begins at a multiple of kAlignment. A chunk is what is pushed, applied and pulled as one.
struct ShardMap {
  std::vector<std::vector<Range>> chunks;  // by shard; a shard may have none

  // Equal for equal chunks (FNV-1a, 64 bits).
  std::uint64_t hash() const;
};

// `shards` is at least 1.
ShardMap shard_map(const ParamLayout& layout, std::size_t shards, const Sharding& sharding);

}  // namespace syncopate::ps
