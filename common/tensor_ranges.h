// Where the tensors of an arena lie. A codec needs this to give each tensor a scale of its own and to leave out the
// padding between them, and a shard, which knows only its chunks, is sent it. Pure.
#pragma once

#include <span>
#include <vector>

#include "common/param_layout.h"

namespace syncopate {

// The ranges of a layout's tensors that are not tables, ascending.
using TensorRanges = std::vector<Range>;

inline TensorRanges tensor_ranges(const ParamLayout& layout) {
  TensorRanges ranges;
  for (const TensorSpec& tensor : std::span(layout.tensors()).subspan(layout.tables().size())) {
    ranges.push_back(tensor.range);
  }
  return ranges;
}

}  // namespace syncopate
