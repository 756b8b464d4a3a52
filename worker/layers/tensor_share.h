// TensorShare: which elements of a layer's weight or bias one of several workers has, which together have the layer
// (Shoeybi et al. 2019, "Megatron-LM", section 3). A weight is (outputs, inputs), row by row. Megatron-LM writes y = xA
// and calls the outputs columns. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/param_layout.h"

namespace syncopate::worker {

// The part `part` of `parts`, counted from 0.
struct LayerPart {
  int part = 0;
  int parts = 1;
};

enum class SplitBy { kNothing, kOutputs, kInputs };

// How a layer's weight is divided: not at all, or alike by its outputs or inputs, whose number is a multiple of
// groups · parts. Each of `groups` ranges of outputs in a row, such as those of queries, keys and values, is divided by
// itself.
struct WeightSplit {
  SplitBy by = SplitBy::kNothing;
  LayerPart part = {};
  int groups = 1;
};

class TensorShare {
 public:
  using Shape = std::vector<std::int64_t>;

  // A worker's share of a weight of that shape, or of a bias. A bias has no inputs: it is whole where they are divided.
  TensorShare(Shape whole, const WeightSplit& split)
      : whole_(std::move(whole)), own_(whole_), length_(size_of(whole_)), stride_(length_) {
    const auto parts = static_cast<std::size_t>(split.part.parts), part = static_cast<std::size_t>(split.part.part);
    std::size_t stretches = 1;
    if (split.by == SplitBy::kOutputs) {
      own_.front() /= split.part.parts;
      stretches = static_cast<std::size_t>(split.groups);
    } else if (split.by == SplitBy::kInputs && whole_.size() > 1) {
      own_.back() /= split.part.parts;
      stretches = size_of(whole_) / static_cast<std::size_t>(whole_.back());
    } else {
      return;
    }
    stride_ = size_of(whole_) / stretches;
    length_ = stride_ / parts;
    first_ = part * length_;
  }

  const Shape& whole() const { return whole_; }
  const Shape& own() const { return own_; }
  bool is_whole() const { return own_ == whole_; }
  // Returns the share of that part's worker.
  TensorShare of_part(int part) const {
    TensorShare share = *this;
    if (!is_whole()) share.first_ = static_cast<std::size_t>(part) * length_;
    return share;
  }

  // Elements [begin, begin + size) of the whole tensor, which are elements [at, at + size) of the share.
  struct Stretch {
    std::size_t begin = 0, at = 0, size = 0;
  };
  // Calls visit(Stretch) for what `range` of the share is of, ascending in both.
  template <typename Visit>
  void for_each(Range range, const Visit& visit) const {
    for (std::size_t at = range.begin; at < range.end;) {
      const std::size_t within = at % length_, size = std::min(length_ - within, range.end - at);
      visit(Stretch{.begin = first_ + at / length_ * stride_ + within, .at = at, .size = size});
      at += size;
    }
  }
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for_each({0, size_of(own_)}, visit);
  }

 private:
  static std::size_t size_of(const Shape& shape) {
    std::size_t size = 1;
    for (const std::int64_t dimension : shape) size *= static_cast<std::size_t>(dimension);
    return size;
  }

  Shape whole_, own_;
  // Stretches of so many elements in a row, the first of which begins at first_; each begins so far behind the one
  // before.
  std::size_t first_ = 0, length_, stride_;
};

}  // namespace syncopate::worker
