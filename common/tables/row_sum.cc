#include "common/tables/row_sum.h"

#include <algorithm>
#include <cassert>
#include <cstdint>

namespace syncopate {
namespace {

constexpr std::uint64_t kNoKey = std::uint64_t{1} << 32;

}  // namespace

void RowSum::sum(std::span<const SparseRows> by_rank) {
  std::size_t most = 0;
  for (const SparseRows& rows : by_rank) {
    assert(rows.values.size() == rows.keys.size() * width_);
    most += rows.keys.size();
  }
  keys_.clear();
  keys_.reserve(most);
  if (values_.size() < most * width_) values_.resize(most * width_);
  next_.assign(by_rank.size(), 0);
  while (true) {
    std::uint64_t key = kNoKey;
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      const RowKeys keys = by_rank[rank].keys;
      if (next_[rank] < keys.size()) key = std::min<std::uint64_t>(key, keys[next_[rank]]);
    }
    if (key == kNoKey) return;
    float* const sum = values_.data() + keys_.size() * width_;
    bool is_first = true;
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      const RowKeys keys = by_rank[rank].keys;
      if (next_[rank] == keys.size() || keys[next_[rank]] != key) continue;
      const float* const row = by_rank[rank].values.data() + next_[rank]++ * width_;
      if (is_first) {
        std::copy_n(row, width_, sum);
      } else {
        for (std::size_t i = 0; i < width_; ++i) sum[i] += row[i];
      }
      is_first = false;
    }
    keys_.push_back(static_cast<RowKey>(key));
  }
}

}  // namespace syncopate
