// RowTable: the rows of a table, or of the part of it that a shard holds, with their optimizer state. A row is created
// when first touched. An update changes only the rows that it names, and their state. One thread.
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
  std::size_t table = 0;  // its number (TableSpec)
  std::size_t width = 1;
  float limit = 0;  // rows begin as initial_row(seed, table, key, limit)
  std::uint64_t seed = 1;
  OptimizerConfig optimizer;
};

class RowTable {
 public:
  explicit RowTable(const RowTableOptions& options);

  // Reads the rows `keys`, in any order, into `values` (keys, width). Creates rows that do not exist yet; fails with
  // resource exhausted if there is no memory.
  Status read(RowKeys keys, std::span<float> values);
  // The same, but creates none: for a row that does not exist, returns its initial values.
  void peek(RowKeys keys, std::span<float> values) const;
  // Makes one update of the rows `keys`, without duplicates, with `gradients` (keys, width). First creates rows that do
  // not exist yet; if there is no memory for them, fails with resource exhausted and updates no row.
  Status update(RowKeys keys, std::span<const float> gradients, const UpdateStep& step);

  // save stores all created rows, ascending, with their optimizer state. restore, before any row has been created,
  // reads them back: data loss if `state` is not of such rows, resource exhausted if there is no memory.
  void save(RowsState& state) const;
  Status restore(const RowsState& state);

  // The keys of the created rows, ascending.
  std::vector<RowKey> keys() const { return index_.keys(); }
  std::size_t created() const { return index_.size(); }
  // Memory of the rows, of their optimizer state and of the index.
  std::size_t bytes() const;

 private:
  // Points found_ to the rows `keys`. Creates those that do not exist.
  Status find(RowKeys keys);
  float* row_at(std::uint32_t place) { return const_cast<float*>(std::as_const(*this).row_at(place)); }
  const float* row_at(std::uint32_t place) const {
    return slabs_[place >> slab_shift_].data() + (place & ((1u << slab_shift_) - 1)) * row_floats_;
  }
  float* make_row(RowKey key);

  const RowTableOptions options_;
  Optimizer optimizer_;
  const std::size_t row_floats_;      // weights, followed by their optimizer state
  const int slab_shift_;              // a slab has 2^slab_shift_ rows
  RowIndex index_;                    // places of rows are counted through all slabs
  std::vector<AlignedBuffer> slabs_;  // so that no row ever moves
  std::vector<float*> found_;         // by key of the current call
};

// Returns a RowTable for each table of the layout, each of which may hold all rows.
std::vector<RowTable> row_tables_of(const ParamLayout& layout, std::uint64_t seed, const OptimizerConfig& optimizer);

}  // namespace syncopate
