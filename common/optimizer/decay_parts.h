// The parts of an arena that weight decay changes. By default it leaves out biases and the scales and shifts of norms,
// that is, all tensors of one dimension, as is usual (Goyal et al. 2017, section 5.3, and Loshchilov and Hutter's
// successors leave norms and biases out). These are ranges rather than a flag per element, so that an update's loops
// stay simple; update groups, which have rates and decays of their own, are ranges for the same reason. Pure.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "common/param_layout.h"

namespace syncopate {

// Returns the undecayed ranges of the layout's arena, ascending; tensors with only padding between them form one range.
std::vector<Range> undecayed_ranges(const ParamLayout& layout);

// Returns the parts of `ranges` (ascending, disjoint) within `part`, counted from the beginning of `part`.
std::vector<Range> ranges_within(std::span<const Range> ranges, Range part);

// A part of the arena that is updated in its own way.
struct UpdateGroup {
  Range range;
  double rate_factor = 1;  // of the learning rate
  float weight_decay = 0;
  bool adapt = true;  // under rules that go by layer: whether its tensors have trust ratios

  bool operator==(const UpdateGroup&) const = default;
};

inline Range range_of(Range range) { return range; }
inline Range range_of(const UpdateGroup& group) { return group.range; }

// Calls work(part, inside) for parts that cover `range`, in order; each is wholly inside of one of `ranges` (ascending,
// disjoint), to which `inside` points, or outside of all: null.
template <typename Ranged, typename Work>
void for_each_part(std::span<const Ranged> ranges, Range range, Work&& work) {
  auto next = std::ranges::upper_bound(ranges, range.begin, {}, [](const Ranged& each) { return range_of(each).end; });
  for (std::size_t begin = range.begin; begin < range.end;) {
    const bool is_inside = next != ranges.end() && begin >= range_of(*next).begin;
    std::size_t end = range.end;
    if (next != ranges.end()) end = std::min(end, is_inside ? range_of(*next).end : range_of(*next).begin);
    work(Range{begin, end}, is_inside ? &*next : nullptr);
    if (is_inside) ++next;
    begin = end;
  }
}

// Calls work(part, decays) for parts that cover `range`, in order; each part is wholly inside or wholly outside
// `undecayed` (ascending, disjoint).
template <typename Work>
void for_each_decay_part(std::span<const Range> undecayed, Range range, Work&& work) {
  for_each_part(undecayed, range, [&](Range part, const Range* inside) { work(part, inside == nullptr); });
}

}  // namespace syncopate
