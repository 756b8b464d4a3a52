#include "ps/tables/row_partition.h"

#include <algorithm>
#include <numeric>

namespace syncopate::ps {

// Counts, then places: a counting sort, which keeps the order of keys.
void RowPartition::split(RowKeys keys) {
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
