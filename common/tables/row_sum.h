// RowSum: adds up several replicas' sparse gradients, in the given order, over the union of their keys: ((g0 + g1) +
// g2) + ... over those that have the row. Pure; reuses its memory.
#pragma once

#include <span>
#include <vector>

#include "common/param_layout.h"

namespace syncopate {

struct SparseRows {
  RowKeys keys;
  std::span<const float> values;  // (keys, width)
};

class RowSum {
 public:
  explicit RowSum(std::size_t width) : width_(width) {}

  void sum(std::span<const SparseRows> by_rank);

  // The last sum, valid until the next: keys ascending, and values (keys, width).
  RowKeys keys() const { return keys_; }
  std::span<const float> values() const { return std::span(values_).first(keys_.size() * width_); }

 private:
  const std::size_t width_;
  std::vector<RowKey> keys_;
  std::vector<float> values_;      // may be longer than the last sum
  std::vector<std::size_t> next_;  // by rank: the first key that is not in the sum yet
};

}  // namespace syncopate
