#include "ps/policy/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
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

double sum_of(std::span<const double> parts) { return std::accumulate(parts.begin(), parts.end(), 0.0); }

// `size` floats in equal rounds, as few as keep ranges within `largest`, each cut as the parts are to each other. All
// ranges begin at multiples of kAlignment, as `size` and `largest` are.
std::vector<Range> ranges_by_parts(std::size_t size, std::size_t largest, std::span<const double> parts) {
  constexpr double kRounding = 1e-6;
  const double units = static_cast<double>(size / kAlignment), whole = sum_of(parts);
  const double rounds = std::max(
      1.0, std::ceil(units * std::ranges::max(parts) / whole / static_cast<double>(largest / kAlignment) - kRounding));
  std::vector<Range> ranges;
  std::size_t begin = 0;
  for (double round = 0; round < rounds; ++round) {
    double before = round * whole;
    for (const double part : parts) {
      before += part;
      const std::size_t end = static_cast<std::size_t>(units * before / (rounds * whole) + kRounding) * kAlignment;
      ranges.push_back({begin, end});
      begin = end;
    }
  }
  return ranges;
}

std::vector<Range> equal_ranges(std::size_t size, std::size_t largest, std::size_t shards) {
  const std::size_t rounds = std::max<std::size_t>(1, (size + shards * largest - 1) / (shards * largest));
  return balanced_ranges(size, rounds * shards);
}

void place_balanced(const ParamLayout& layout, std::size_t largest, std::span<const double> parts, ShardMap& map) {
  const Range dense = layout.dense();
  const std::size_t shards = map.chunks.size();
  const std::vector<Range> chunks =
      parts.empty() ? equal_ranges(dense.size(), largest, shards) : ranges_by_parts(dense.size(), largest, parts);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const Range chunk{dense.begin + chunks[i].begin, dense.begin + chunks[i].end};
    if (chunk.size() > 0) map.chunks[i % shards].push_back(chunk);
  }
}

// What shards have so far.
class Filling {
 public:
  Filling(std::size_t shards, std::span<const double> parts) : loads_(shards), parts_(parts) {}

  // Gives `floats` to the shard that is then the least full of its part; of equals to the first that has least.
  std::size_t give(std::size_t floats) {
    const auto load = [&](std::size_t shard) {
      const std::size_t after = loads_[shard] + floats;
      return parts_.empty() ? static_cast<double>(after) : static_cast<double>(after) / parts_[shard];
    };
    std::size_t least = 0;
    for (std::size_t shard = 1; shard < loads_.size(); ++shard) {
      if (load(shard) < load(least)) least = shard;
    }
    loads_[least] += floats;
    return least;
  }

 private:
  std::vector<std::size_t> loads_;
  std::span<const double> parts_;
};

void place_least_loaded(std::vector<Piece> pieces, Filling filling, ShardMap& map) {
  std::ranges::stable_sort(pieces, std::greater(), [](const Piece& piece) { return piece.range.size(); });
  for (const Piece& piece : pieces) map.chunks[filling.give(piece.range.size())].push_back(piece.range);
  for (std::vector<Range>& chunks : map.chunks) std::ranges::sort(chunks, {}, &Range::begin);
}

// `pieces` in the arena's order.
void place_whole(const ParamLayout& layout, const std::vector<Piece>& pieces, Filling filling, ShardMap& map) {
  std::size_t shard = 0;
  for (const Piece& piece : pieces) {
    if (piece.part == 0) shard = filling.give(layout.tensors()[piece.tensor].range.size());
    map.chunks[shard].push_back(piece.range);
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
  assert(sharding.parts.empty() || (sharding.parts.size() == shards && takes_parts(sharding.policy)));
  ShardMap map;
  map.chunks.resize(shards);
  const std::size_t largest = floats_in(sharding.chunk_bytes);
  switch (sharding.policy) {
    case ShardingPolicy::kBalanced:
      place_balanced(layout, largest, sharding.parts, map);
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
      place_least_loaded(pieces_of(layout, largest), {shards, sharding.parts}, map);
      break;
    case ShardingPolicy::kWhole:
      place_whole(layout, pieces_of(layout, largest), {shards, sharding.parts}, map);
      break;
  }
  return map;
}

ShardLoads loads_of(const ShardMap& map, std::span<const double> parts) {
  ShardLoads loads;
  for (const std::vector<Range>& shard : map.chunks) {
    std::size_t floats = 0;
    for (const Range& chunk : shard) floats += chunk.size();
    loads.bytes.push_back(floats * sizeof(float));
    loads.chunks.push_back(shard.size());
  }
  const auto all = static_cast<double>(std::accumulate(loads.bytes.begin(), loads.bytes.end(), std::size_t{0}));
  if (all == 0) return loads;
  loads.skew = 0;
  const double whole = parts.empty() ? static_cast<double>(loads.bytes.size()) : sum_of(parts);
  for (std::size_t shard = 0; shard < loads.bytes.size(); ++shard) {
    const double part = parts.empty() ? 1 : parts[shard];
    const double fullness = static_cast<double>(loads.bytes[shard]) * whole / (part * all);
    if (fullness > loads.skew) loads.fullest = shard;
    loads.skew = std::max(loads.skew, fullness);
  }
  return loads;
}

}  // namespace syncopate::ps
