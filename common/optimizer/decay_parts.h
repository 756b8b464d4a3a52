// The parts of an arena that weight decay changes. By default it leaves out biases and the scales and shifts of norms,
// that is, all tensors of one dimension, as is usual (Goyal et al. 2017, section 5.3, and Loshchilov and Hutter's
// successors leave norms and biases out). These are ranges rather than a flag per element, so that an update's loops
// stay simple. Pure.
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

// Calls work(part, decays) for parts that cover `range`, in order; each part is wholly inside or wholly outside
// `undecayed` (ascending, disjoint).
template <typename Work>
void for_each_decay_part(std::span<const Range> undecayed, Range range, Work&& work) {
  auto next = std::ranges::upper_bound(undecayed, range.begin, {}, &Range::end);
  for (std::size_t begin = range.begin; begin < range.end;) {
    const bool decays = next == undecayed.end() || begin < next->begin;
    std::size_t end = range.end;
    if (next != undecayed.end()) end = std::min(end, decays ? next->begin : next->end);
    work(Range{begin, end}, decays);
    if (!decays) ++next;
    begin = end;
  }
}

}  // namespace syncopate
