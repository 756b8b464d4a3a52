// Which parts of an arena weight decay changes. Biases, and the scales and shifts of norms, are left out by default:
// all tensors of one dimension, as is usual (Goyal et al. 2017, section 5.3, and Loshchilov and Hutter's successors
// leave norms and biases out). Ranges, not a flag for each element, so that an update's loops stay what they are. Pure.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "common/param_layout.h"

namespace syncopate {

// Of the layout's arena, ascending; tensors with nothing but padding between them make one range.
std::vector<Range> undecayed_ranges(const ParamLayout& layout);

// What of `ranges` (ascending, apart) lies in `part`, counted from the beginning of `part`.
std::vector<Range> ranges_within(std::span<const Range> ranges, Range part);

// Calls work(part, decays) for parts that cover `range`, in order, each wholly inside `undecayed` (ascending, apart) or
// outside.
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
