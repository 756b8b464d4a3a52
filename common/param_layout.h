// ParamLayout: a model's named tensors in one flat arena of float32. Weights and gradients are one contiguous buffer
// each, of layout.size() elements with the same layout. Pure values; it owns no memory.
//
// A row-sparse tensor is a table of which a step touches few rows: an embedding. It is too large to be in every arena
// or to be sent as a whole; the arena has room for the rows of one step, side by side. Tables come first in the layout,
// as they do in a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace syncopate {

// Elements [begin, end) of the flat arena.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Whether both have an element.
constexpr bool overlap(Range first, Range second) { return first.begin < second.end && second.begin < first.end; }

// Returns the part of an arena that a range names.
template <typename T>
std::span<T> slice(std::span<T> arena, Range range) {
  return arena.subspan(range.begin, range.size());
}

// Tensors, shards and buckets begin at multiples of this many elements: one cache line, one AVX-512 register.
inline constexpr std::size_t kAlignment = 16;

using RowKey = std::uint32_t;             // a row's number in its table
using RowKeys = std::span<const RowKey>;  // ascending, without duplicates

// For a row-sparse tensor of the shape (rows, width).
struct TableSpec {
  std::int64_t rows_a_step = 0;  // the most rows that a step touches
  float limit = 0;               // rows begin uniform in ±limit (initial_row.h)
  std::size_t number = 0;        // its index in the model's layout, also in a layout of a part of it; add_table sets it

  bool operator==(const TableSpec&) const = default;
};

struct TensorSpec {
  std::string name;                 // unique, as in "dense1.weight"
  std::vector<std::int64_t> shape;  // outermost dimension first
  Range range;                      // its place in the arena; its size is the product of shape, or rows_a_step · width
  std::optional<TableSpec> table = {};

  std::size_t rows() const { return static_cast<std::size_t>(shape.front()); }
  // The range with the padding behind it.
  Range padded() const { return {range.begin, (range.end + kAlignment - 1) / kAlignment * kAlignment}; }
  // For a table: the elements of a row, and the range of the first `count` rows of a step.
  std::size_t width() const { return static_cast<std::size_t>(shape.back()); }
  Range room_of(std::size_t count) const { return {range.begin, range.begin + count * width()}; }
  bool operator==(const TensorSpec&) const = default;
};

class ParamLayout {
 public:
  // Appends a tensor after the last one, in forward order, and returns its index. Every dimension must be at least 1.
  std::size_t add(std::string name, std::vector<std::int64_t> shape);

  // Appends a row-sparse tensor and returns its index. All tables must be added before other tensors, and are counted
  // like them. At most 2^32 rows.
  std::size_t add_table(std::string name, std::int64_t rows, std::int64_t width, const TableSpec& table);

  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  // The row-sparse tensors, which come first.
  std::span<const TensorSpec> tables() const { return std::span(tensors_).first(tables_); }
  // The part of the arena behind the tables' ranges: all of it in a layout that was made without tables; the tensors'
  // own part in part(), which may have gaps that others train.
  Range dense() const { return {dense_begin_, dense_end_}; }
  // The same without the gaps: what the tensors have with their padding, ascending.
  std::vector<Range> dense_places() const;

  // Those tables of which `keeps_table` has true, and the rest of the tensors if `keeps_dense`, at the places that they
  // have here. Between them, and in front of the rest, are then parts of the arena that hold none of its tensors.
  // `keeps_table` has an entry for each table.
  ParamLayout selection(const std::vector<bool>& keeps_table, bool keeps_dense) const;
  // The tensors in these places alone, of a layout without tables, at the places that they have here, in an arena of
  // the same size: the part of the model that a worker trains of which others train the rest. Places are ascending and
  // have whole tensors with their padding; at least one.
  ParamLayout part(std::span<const Range> places) const;

  // The elements of the arena: the tensors and the padding that aligns them. Padding holds zeros, in weights and
  // gradients.
  std::size_t size() const { return size_; }
  bool empty() const { return tensors_.empty(); }
  // The elements of the tensors without padding; for tables, of all rows.
  std::size_t parameter_count() const;

  // Equal for equal names, shapes and places (FNV-1a, 64 bits). Replicas compare it before they exchange bytes.
  std::uint64_t hash() const;

 private:
  std::vector<TensorSpec> tensors_;
  std::size_t tables_ = 0;
  std::size_t dense_begin_ = 0, dense_end_ = 0;
  std::size_t size_ = 0;
};

// Cuts the arena, or the part of it that the layout's tensors have, into buckets in the order in which backward
// finishes them, from its end to its beginning. A bucket holds as many whole tensors as fit in `bucket_bytes`; a larger
// tensor has a bucket of its own, and so has each table. The buckets cover the tensors, with the padding behind them,
// without overlap.
std::vector<Range> buckets_in_backward_order(const ParamLayout& layout, std::size_t bucket_bytes);

// Cuts `size` elements into `count` ranges in ascending order that differ by at most one alignment unit (and the last
// by the remainder). Ranges are aligned and cover everything; a tensor may be split. If there are fewer units than
// ranges, the last ones are empty.
std::vector<Range> balanced_ranges(std::size_t size, std::size_t count);

// Reports which buckets are complete while backward goes from the last tensor to the first.
class BackwardProgress {
 public:
  // `buckets` are in backward order and cover the layout's arena; a bucket may begin or end inside a tensor.
  BackwardProgress(const ParamLayout& layout, std::vector<Range> buckets);

  void begin() { next_ = 0; }

  // The gradients of tensor `index` and of all after it are final. Calls ready(bucket index) for each bucket that has
  // become complete, in order.
  template <typename Ready>
  void tensor_ready(std::size_t index, Ready&& ready) {
    while (next_ < buckets_.size() && buckets_[next_].begin >= complete_from_[index]) ready(next_++);
  }

 private:
  std::vector<Range> buckets_;
  std::vector<std::size_t> complete_from_;  // by tensor: the first element that is final with it
  std::size_t next_ = 0;
};

}  // namespace syncopate
