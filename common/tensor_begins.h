// Where the tensors of an arena begin. A codec needs this to give each tensor a scale of its own, and a shard, which
// knows only ranges, is sent it. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/param_layout.h"

namespace syncopate {

// The begins of a layout's tensors that are not tables, ascending.
using TensorBegins = std::vector<std::uint64_t>;

inline TensorBegins tensor_begins(const ParamLayout& layout) {
  TensorBegins begins;
  for (const TensorSpec& tensor : std::span(layout.tensors()).subspan(layout.tables().size())) {
    begins.push_back(tensor.range.begin);
  }
  return begins;
}

}  // namespace syncopate
