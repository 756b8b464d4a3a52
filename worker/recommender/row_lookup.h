// RowLookup: which rows of a table a batch asks for, each once and ascending, and where each of its ids finds its row.
// Pure; it keeps its memory from batch to batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/param_layout.h"

namespace syncopate::worker {

class RowLookup {
 public:
  // `ids`, each 0 or more, are sorted by their digits (Knuth, The Art of Computer Programming 3, section 5.2.5): a few
  // passes over the batch, as many as the largest id needs.
  void set(std::span<const int> ids);

  RowKeys keys() const { return keys_; }
  // By id, the index of its row in keys().
  std::span<const std::uint32_t> places() const { return places_; }
  // Of the ids that ask for keys()[row], their indices in ascending order.
  std::span<const std::uint32_t> askers(std::size_t row) const {
    return std::span(askers_).subspan(begins_[row], begins_[row + 1] - begins_[row]);
  }

 private:
  void sort();

  std::vector<std::uint64_t> sorted_, other_;  // an id in the upper half, its index in the lower
  std::vector<RowKey> keys_;
  std::vector<std::uint32_t> places_;
  std::vector<std::uint32_t> askers_;
  std::vector<std::size_t> begins_;  // by row, and an end
};

}  // namespace syncopate::worker
