#include "common/tables/row_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <new>

#include "common/os/prefetch.h"
#include "common/tables/initial_row.h"

namespace syncopate {
namespace {

constexpr std::size_t kSlabBytes = 64 * 1024;
// Entries of the index, and rows, are asked for so many keys before they are needed.
constexpr std::size_t kAhead = 16;

}  // namespace

RowTable::RowTable(const RowTableOptions& options)
    : options_(options),
      optimizer_(options.optimizer),
      row_floats_(options.width * (1 + state_floats(options.optimizer))),
      slab_shift_(static_cast<int>(std::bit_width(kSlabBytes / (row_floats_ * sizeof(float)) | 1)) - 1) {
  assert(options.width >= 1);
}

Status RowTable::read(RowKeys keys, std::span<float> values) {
  assert(values.size() == keys.size() * options_.width);
  SYNCOPATE_RETURN_IF_ERROR(find(keys));
  const std::size_t width = options_.width;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i + kAhead < keys.size()) prefetch(found_[i + kAhead], width * sizeof(float));
    std::copy_n(found_[i], width, values.begin() + i * width);
  }
  return Status();
}

void RowTable::peek(RowKeys keys, std::span<float> values) const {
  assert(values.size() == keys.size() * options_.width);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::span<float> row = values.subspan(i * options_.width, options_.width);
    const std::uint32_t place = index_.find(keys[i]);
    if (place != RowIndex::kNone) {
      std::copy_n(row_at(place), row.size(), row.begin());
    } else {
      initial_row(options_.seed, options_.table, keys[i], options_.limit, row);
    }
  }
}

Status RowTable::update(RowKeys keys, std::span<const float> gradients, const UpdateStep& step) {
  assert(gradients.size() == keys.size() * options_.width);
  SYNCOPATE_RETURN_IF_ERROR(find(keys));
  optimizer_.apply_rows(found_, gradients, options_.width, step);
  return Status();
}

void RowTable::save(RowsState& state) const {
  state.row_floats = row_floats_;
  state.keys = keys();
  state.values.resize(state.keys.size() * row_floats_);
  for (std::size_t i = 0; i < state.keys.size(); ++i) {
    std::copy_n(row_at(index_.find(state.keys[i])), row_floats_, state.values.data() + i * row_floats_);
  }
}

Status RowTable::restore(const RowsState& state) {
  assert(created() == 0);
  if (state.row_floats != row_floats_ || state.values.size() != state.keys.size() * row_floats_) {
    return Status::data_loss(fmt::format("{} floats for {} rows of {}, where a row has {}", state.values.size(),
                                         state.keys.size(), state.row_floats, row_floats_));
  }
  SYNCOPATE_RETURN_IF_ERROR(find(state.keys));
  for (std::size_t i = 0; i < found_.size(); ++i) {
    std::copy_n(state.values.data() + i * row_floats_, row_floats_, found_[i]);
  }
  return Status();
}

std::size_t RowTable::bytes() const {
  return (slabs_.size() << slab_shift_) * row_floats_ * sizeof(float) + slabs_.capacity() * sizeof(AlignedBuffer) +
         index_.bytes() + found_.capacity() * sizeof(float*);
}

Status RowTable::find(RowKeys keys) try {
  found_.resize(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i + kAhead < keys.size()) index_.prefetch(keys[i + kAhead]);
    const std::uint32_t place = index_.find(keys[i]);
    found_[i] = place != RowIndex::kNone ? row_at(place) : make_row(keys[i]);
  }
  return Status();
} catch (const std::bad_alloc&) {
  return Status::resource_exhausted(
      fmt::format("no memory for more than {} rows of {} floats, {} MiB", created(), row_floats_, bytes() >> 20));
}

float* RowTable::make_row(RowKey key) {
  const auto place = static_cast<std::uint32_t>(index_.size());
  if (place >> slab_shift_ == slabs_.size()) slabs_.emplace_back(row_floats_ << slab_shift_);
  index_.add(key, place);
  float* const row = row_at(place);
  initial_row(options_.seed, options_.table, key, options_.limit, {row, options_.width});
  return row;
}

std::vector<RowTable> row_tables_of(const ParamLayout& layout, std::uint64_t seed, const OptimizerConfig& optimizer) {
  std::vector<RowTable> tables;
  for (const TensorSpec& spec : layout.tables()) {
    tables.emplace_back(RowTableOptions{.table = spec.table->number,
                                        .width = spec.width(),
                                        .limit = spec.table->limit,
                                        .seed = seed,
                                        .optimizer = optimizer});
  }
  return tables;
}

}  // namespace syncopate
