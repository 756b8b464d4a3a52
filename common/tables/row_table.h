// RowTable: the rows of a table, or of the part of it that a shard holds, made when first touched, with what the
// optimizer remembers of them. A row that is not named by an update is not changed by it, and its memory is not either.
// One thread.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/optimizer/optimizer.h"
#include "common/os/aligned_buffer.h"
#include "common/param_layout.h"
#include "common/status.h"
#include "common/tables/row_index.h"
#include "common/training_state.h"

namespace syncopate {

struct RowTableOptions {
  std::size_t table = 0;  // its index in the layout
  std::size_t width = 1;
  float limit = 0;  // rows begin as initial_row(seed, table, key, limit)
  std::uint64_t seed = 1;
  OptimizerConfig optimizer;
};

class RowTable {
 public:
  explicit RowTable(const RowTableOptions& options);

  // The rows `keys`, in any order, into `values` (keys, width). Those that were not there are made: resource exhausted
  // where memory ends.
  Status read(RowKeys keys, std::span<float> values);
  // The same, but none is made: a row that is not there is given as it would begin.
  void peek(RowKeys keys, std::span<float> values) const;
  // One update of the rows `keys`, each named once, with `gradients` (keys, width). Those that were not there are made
  // first: resource exhausted where memory ends, and then no row has been updated.
  Status update(RowKeys keys, std::span<const float> gradients, const UpdateStep& step);

  // All rows that have been made, ascending, with what is remembered of them; and the other way round, before any row
  // has been made: data loss where `state` is not of such rows, resource exhausted where memory ends.
  void save(RowsState& state) const;
  Status restore(const RowsState& state);

  // Of the rows that have been made, ascending.
  std::vector<RowKey> keys() const { return index_.keys(); }
  std::size_t created() const { return index_.size(); }
  // Memory of the rows, of what is remembered of them and of the index.
  std::size_t bytes() const;

 private:
  // Points found_ to the rows `keys`. Makes those that are missing.
  Status find(RowKeys keys);
  float* row_at(std::uint32_t place) { return const_cast<float*>(std::as_const(*this).row_at(place)); }
  const float* row_at(std::uint32_t place) const {
    return slabs_[place >> slab_shift_].data() + (place & ((1u << slab_shift_) - 1)) * row_floats_;
  }
  float* make_row(RowKey key);

  const RowTableOptions options_;
  Optimizer optimizer_;
  const std::size_t row_floats_;      // weights, and what is remembered of them behind
  const int slab_shift_;              // a slab has 2^slab_shift_ rows
  RowIndex index_;                    // the places of rows are counted through all slabs
  std::vector<AlignedBuffer> slabs_;  // so that no row ever moves
  std::vector<float*> found_;         // of the call under way, by key
};

// One for each table of the layout, that is to hold any of its rows.
std::vector<RowTable> row_tables_of(const ParamLayout& layout, std::uint64_t seed, const OptimizerConfig& optimizer);

}  // namespace syncopate
