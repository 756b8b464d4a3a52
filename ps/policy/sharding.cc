#include "ps/policy/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "common/hash.h"

namespace syncopate::ps {
namespace {

// A chunk and the tensor that it is part of.
struct Piece {
  Range range;
  std::size_t tensor = 0;
  std::size_t part = 0;  // of the tensor, from 0
};

std::size_t floats_in(std::size_t chunk_bytes) {
  const std::size_t floats = chunk_bytes / sizeof(float);
  return std::max(floats / kAlignment * kAlignment, kAlignment);
}

// `range` in pieces of `largest` floats and a rest.
std::vector<Range> cut(Range range, std::size_t largest) {
  std::vector<Range> pieces;
  for (std::size_t begin = range.begin; begin < range.end; begin += largest) {
    pieces.push_back({begin, std::min(begin + largest, range.end)});
  }
  return pieces;
}

// All dense tensors' chunks in the arena's order.
std::vector<Piece> pieces_of(const ParamLayout& layout, std::size_t largest) {
  const std::vector<TensorSpec>& tensors = layout.tensors();
  std::vector<Piece> pieces;
  for (std::size_t tensor = layout.tables().size(); tensor < tensors.size(); ++tensor) {
    const bool is_last = tensor + 1 == tensors.size();
    const std::size_t end = is_last ? layout.size() : tensors[tensor + 1].range.begin;
    std::size_t part = 0;
    for (const Range& range : cut({tensors[tensor].range.begin, end}, largest)) {
      pieces.push_back({range, tensor, part++});
    }
  }
  return pieces;
}

// D. J. Bernstein's hash, over the key's decimal digits.
std::uint64_t djb2(std::uint64_t key) {
  std::uint64_t hash = 5381;
  for (const char digit : std::to_string(key)) hash = hash * 33 + static_cast<std::uint64_t>(digit);
  return hash;
}

std::uint64_t key_of(const Piece& piece) { return (std::uint64_t{piece.tensor} << 16) + piece.part; }

void place_balanced(const ParamLayout& layout, std::size_t largest, ShardMap& map) {
  const Range dense = layout.dense();
  const std::size_t shards = map.chunks.size();
  const std::size_t rounds = std::max<std::size_t>(1, (dense.size() + shards * largest - 1) / (shards * largest));
  const std::vector<Range> chunks = balanced_ranges(dense.size(), rounds * shards);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const Range chunk{dense.begin + chunks[i].begin, dense.begin + chunks[i].end};
    if (chunk.size() > 0) map.chunks[i % shards].push_back(chunk);
  }
}

void place_least_loaded(std::vector<Piece> pieces, ShardMap& map) {
  std::ranges::stable_sort(pieces, std::greater(), [](const Piece& piece) { return piece.range.size(); });
  std::vector<std::size_t> loads(map.chunks.size());
  for (const Piece& piece : pieces) {
    const auto least = static_cast<std::size_t>(std::ranges::min_element(loads) - loads.begin());
    loads[least] += piece.range.size();
    map.chunks[least].push_back(piece.range);
  }
  for (std::vector<Range>& chunks : map.chunks) std::ranges::sort(chunks, {}, &Range::begin);
}

// `pieces` in the arena's order.
void place_whole(const ParamLayout& layout, const std::vector<Piece>& pieces, ShardMap& map) {
  std::vector<std::size_t> loads(map.chunks.size());
  std::size_t least = 0;
  for (const Piece& piece : pieces) {
    if (piece.part == 0) {
      least = static_cast<std::size_t>(std::ranges::min_element(loads) - loads.begin());
      loads[least] += layout.tensors()[piece.tensor].range.size();
    }
    map.chunks[least].push_back(piece.range);
  }
}

}  // namespace

const char* name_of(ShardingPolicy value) {
  switch (value) {
    case ShardingPolicy::kBalanced:
      return "balanced";
    case ShardingPolicy::kTensor:
      return "tensor";
    case ShardingPolicy::kHash:
      return "hash";
    case ShardingPolicy::kLeastLoaded:
      return "least-loaded";
    case ShardingPolicy::kWhole:
      return "whole";
  }
  return "";
}

Result<ShardingPolicy> parse_sharding_policy(std::string_view text) {
  for (const ShardingPolicy policy : kShardingPolicies) {
    if (text == name_of(policy)) return policy;
  }
  return Status::invalid_argument(fmt::format("'{}' is not balanced, tensor, hash, least-loaded or whole", text));
}

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
  const std::size_t largest = floats_in(sharding.chunk_bytes);
  switch (sharding.policy) {
    case ShardingPolicy::kBalanced:
      place_balanced(layout, largest, map);
      break;
    case ShardingPolicy::kTensor:
      for (const Piece& piece : pieces_of(layout, largest)) map.chunks[piece.tensor % shards].push_back(piece.range);
      break;
    case ShardingPolicy::kHash:
      for (const Piece& piece : pieces_of(layout, largest)) {
        map.chunks[djb2(key_of(piece)) % shards].push_back(piece.range);
      }
      break;
    case ShardingPolicy::kLeastLoaded:
      place_least_loaded(pieces_of(layout, largest), map);
      break;
    case ShardingPolicy::kWhole:
      place_whole(layout, pieces_of(layout, largest), map);
      break;
  }
  return map;
}

ShardLoads loads_of(const ShardMap& map) {
  ShardLoads loads;
  for (const std::vector<Range>& shard : map.chunks) {
    std::size_t floats = 0;
    for (const Range& chunk : shard) floats += chunk.size();
    loads.bytes.push_back(floats * sizeof(float));
    loads.chunks.push_back(shard.size());
  }
  const auto all = static_cast<double>(std::accumulate(loads.bytes.begin(), loads.bytes.end(), std::size_t{0}));
  if (all == 0) return loads;
  const auto largest = static_cast<double>(std::ranges::max(loads.bytes));
  loads.skew = largest * static_cast<double>(loads.bytes.size()) / all;
  return loads;
}

}  // namespace syncopate::ps
