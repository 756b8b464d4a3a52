// ParamLayout: a model's named tensors in one flat arena of float32. Weights and gradients are each one contiguous
// buffer of layout.size() elements with the same layout. Pure values; no memory is owned here.
#pragma once

#include <cstddef>
#include <cstdint>
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

// The part of an arena that a range names.
template <typename T>
std::span<T> slice(std::span<T> arena, Range range) {
  return arena.subspan(range.begin, range.size());
}

// Tensors, shards and buckets begin at multiples of this many elements: one cache line, one AVX-512 register.
inline constexpr std::size_t kAlignment = 16;

struct TensorSpec {
  std::string name;                 // unique, as in "dense1.weight"
  std::vector<std::int64_t> shape;  // outermost dimension first
  Range range;                      // where it lies; range.size() is the product of shape

  bool operator==(const TensorSpec&) const = default;
};

class ParamLayout {
 public:
  // Appends a tensor behind the last one, in forward order, and returns its index. Every dimension is at least 1.
  std::size_t add(std::string name, std::vector<std::int64_t> shape);

  const std::vector<TensorSpec>& tensors() const { return tensors_; }

  // Elements of the arena: the tensors and the padding that aligns them. Padding holds zeros, in weights and gradients.
  std::size_t size() const { return size_; }
  // Elements of the tensors alone.
  std::size_t parameter_count() const;

  // Equal for equal names, shapes and places (FNV-1a, 64 bits): what replicas compare before they exchange bytes.
  std::uint64_t hash() const;

 private:
  std::vector<TensorSpec> tensors_;
  std::size_t size_ = 0;
};

// Cuts the arena into buckets in the order in which backward finishes them: from the arena's end to its beginning,
// whole tensors, each bucket as many as fit in `bucket_bytes` (a larger tensor has a bucket of its own). The buckets
// cover the arena without overlap.
std::vector<Range> buckets_in_backward_order(const ParamLayout& layout, std::size_t bucket_bytes);

// Cuts `size` elements into `count` ranges in ascending order that differ by at most one alignment unit (and the last
// by the remainder). Ranges are aligned and cover everything; a tensor may be split. Where there are fewer units than
// ranges, the last ones are empty.
std::vector<Range> balanced_ranges(std::size_t size, std::size_t count);

// Tells which buckets are complete while backward walks from the last tensor to the first.
class BackwardProgress {
 public:
  // `buckets` in backward order, covering the layout's arena; a bucket may begin or end inside a tensor.
  BackwardProgress(const ParamLayout& layout, std::vector<Range> buckets);

  void begin() { next_ = 0; }

  // The gradients of tensor `index` and of all behind it are final. Calls ready(bucket index) for each bucket that has
  // become complete, in order.
  template <typename Ready>
  void tensor_ready(std::size_t index, Ready&& ready) {
    while (next_ < buckets_.size() && buckets_[next_].begin >= complete_from_[index]) ready(next_++);
  }

 private:
  std::vector<Range> buckets_;
  std::vector<std::size_t> complete_from_;  // by tensor: first element that is final with it
  std::size_t next_ = 0;
};

}  // namespace syncopate
