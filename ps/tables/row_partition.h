// Which shard holds a row of a table, and how the rows of one step divide among shards. Pure; both sides compute it
// alike.
//
// A few rows are touched often and most seldom, and those touched often may be adjacent: ranges of keys, or keys modulo
// shards, would make a shard hot. A hash that mixes all bits of a key puts each row on any shard with equal
// probability, whatever its popularity. A step names a row once, however many samples touch it: so of n rows of a step
// each shard has n / shards, give or take sqrt(n / shards). The mixing is SplitMix64's (Steele, Lea, Flood 2014,
// section 4). It differs from RowIndex's multiplication, whose places would crowd if its leading bits had chosen the
// shard.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "common/param_layout.h"

namespace syncopate::ps {

// Returns the shard, of `shards`, that holds row `key` of the model's `table`-th table.
inline std::size_t shard_of_row(std::size_t table, RowKey key, std::size_t shards) {
  std::uint64_t z = ((std::uint64_t{table} << 32) | key) + 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  return static_cast<std::size_t>(((z >> 32) * shards) >> 32);
}

class RowPartition {
 public:
  RowPartition(std::size_t table, std::size_t shards) : table_(table), begins_(shards + 1) {}

  // Divides `keys` among the shards. `keys` is not kept.
  void split(RowKeys keys);

  // Returns which keys of the last split lie on `shard`, as ascending places in the list.
  std::span<const std::uint32_t> places_of(std::size_t shard) const {
    return std::span(places_).subspan(begins_[shard], begins_[shard + 1] - begins_[shard]);
  }

 private:
  std::size_t table_;
  std::vector<std::uint32_t> shards_;  // by key
  std::vector<std::size_t> begins_;    // by shard: where it begins in places_; and the end
  std::vector<std::uint32_t> places_;
};

// Counts, then places: a counting sort, which keeps the order of keys.
inline void RowPartition::split(RowKeys keys) {
  const std::size_t shards = begins_.size() - 1;
  shards_.resize(keys.size());
  places_.resize(keys.size());
  std::ranges::fill(begins_, 0);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    shards_[i] = static_cast<std::uint32_t>(shard_of_row(table_, keys[i], shards));
    ++begins_[shards_[i]];
  }
  std::exclusive_scan(begins_.begin(), begins_.end(), begins_.begin(), std::size_t{0});
  for (std::size_t i = 0; i < keys.size(); ++i) places_[begins_[shards_[i]]++] = static_cast<std::uint32_t>(i);
  // Each begin now stands at the next one's.
  std::shift_right(begins_.begin(), begins_.end(), 1);
  begins_[0] = 0;
}

}  // namespace syncopate::ps
