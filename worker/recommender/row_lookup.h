// RowLookup: the rows of a table that a batch selects, each once and ascending, and for each id the place of its row.
// Pure; it reuses its memory from batch to batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/param_layout.h"

namespace syncopate::worker {

class RowLookup {
 public:
  // Sets the ids of the batch, each 0 or more. They are sorted by radix sort (Knuth, The Art of Computer Programming 3,
  // section 5.2.5): a few passes over the batch, as many as the largest id needs.
  void set(std::span<const int> ids);

  RowKeys keys() const { return keys_; }
  // By id, the index of its row in keys().
  std::span<const std::uint32_t> places() const { return places_; }
  // The indices of the ids that select keys()[row], ascending.
  std::span<const std::uint32_t> askers(std::size_t row) const {
    return std::span(askers_).subspan(begins_[row], begins_[row + 1] - begins_[row]);
  }

 private:
  void sort();

  std::vector<std::uint64_t> sorted_, other_;  // an id in the upper half, its index in the lower
  std::vector<RowKey> keys_;
  std::vector<std::uint32_t> places_;
  std::vector<std::uint32_t> askers_;
  std::vector<std::size_t> begins_;  // by row, followed by the end
};

}  // namespace syncopate::worker
