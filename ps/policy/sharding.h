// Sharding: which shard holds which part of the arena, and in which chunks it is sent. Pure: both sides compute it from
// the same layout, and compare its hash when a worker joins. Every shard holds a part of each table (row_partition.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "common/param_layout.h"
#include "common/status.h"

namespace syncopate::ps {

enum class ShardingPolicy {
  // Equal chunks of the arena, as many on each shard, dealt to the shards in turn, so that all are busy from the first
  // gradient of the backward pass to its last; tensors may be split. Where parts are unequal, so are chunks.
  kBalanced,
  // Whole tensors, round robin in the layout's order, as TensorFlow places variables (the default of
  // replica_device_setter). A tensor that is larger than all others together makes its shard hot.
  kTensor,
  // Chunks by a hash of their key, which is made of their tensor's index and their place in it, as BytePS does with its
  // partitions (global.cc; djb2 is its usual hash) and MXNet with small arrays.
  kHash,
  // Chunks from the largest to the smallest, each to the shard that has the least so far ("longest processing time
  // first", Graham 1969, "Bounds on multiprocessing timing anomalies", section 5): the largest shard then has at most
  // 4/3 - 1/(3 shards) times the least possible maximum. Where parts are unequal, a chunk goes where it makes the shard
  // fullest least, as on machines of unequal speeds (Gonzalez, Ibarra and Sahni 1977, "Bounds for LPT schedules on
  // uniform processors").
  kLeastLoaded,
  // Whole tensors in the layout's order, each to the shard that has the fewest bytes so far, the first of equals, as
  // TensorFlow's GreedyLoadBalancingStrategy places variables by byte_size_load_fn (tensorflow/contrib/training,
  // device_setter.py). Padding counts for nothing. As under kTensor, a large tensor makes its shard hot.
  kWhole,
};

inline constexpr ShardingPolicy kShardingPolicies[] = {ShardingPolicy::kBalanced, ShardingPolicy::kTensor,
                                                       ShardingPolicy::kHash, ShardingPolicy::kLeastLoaded,
                                                       ShardingPolicy::kWhole};

// "balanced", "tensor", "hash", "least-loaded", "whole"
const char* name_of(ShardingPolicy value);
// Returns the policy of this name. An error says what is wrong and what would be right.
Result<ShardingPolicy> parse_sharding_policy(std::string_view text);

// The size of chunks that hold a whole tensor each, whatever its size.
inline constexpr std::size_t kUncut = std::numeric_limits<std::size_t>::max();

struct Sharding {
  ShardingPolicy policy = ShardingPolicy::kBalanced;
  std::size_t chunk_bytes = 256 * 1024;  // the most that a chunk holds; at least one cache line
  // By shard, what it is to hold of all bytes, above 0, in any unit; empty: equal parts. kTensor and kHash take none.
  std::vector<double> parts = {};
};

inline bool takes_parts(ShardingPolicy policy) {
  return policy != ShardingPolicy::kTensor && policy != ShardingPolicy::kHash;
}

// For updates that need whole tensors: each is one chunk.
inline constexpr Sharding kWholeTensors{.policy = ShardingPolicy::kWhole, .chunk_bytes = kUncut};

// The chunks of each shard: ranges of the arena in ascending order, none empty. All together they cover the arena's
// dense part without overlap; each begins at a multiple of kAlignment. A chunk is pushed, applied and pulled as a
// whole. Under all policies but balanced it is part of one tensor, with the padding after it.
struct ShardMap {
  std::vector<std::vector<Range>> chunks;  // by shard; may be empty for a shard

  // Equal chunks give equal hashes (FNV-1a, 64 bits).
  std::uint64_t hash() const;
};

// `shards` is at least 1. `sharding.parts` is empty or has as many.
ShardMap shard_map(const ParamLayout& layout, std::size_t shards, const Sharding& sharding);

// The load on each shard.
struct ShardLoads {
  std::vector<std::size_t> bytes;   // of weights, by shard
  std::vector<std::size_t> chunks;  // by shard
  double skew = 1;                  // of the fullest: its bytes over its part of all, which is the mean by default
  std::size_t fullest = 0;          // the first of equals
};

// `parts` are those of the Sharding.
ShardLoads loads_of(const ShardMap& map, std::span<const double> parts = {});

}  // namespace syncopate::ps
