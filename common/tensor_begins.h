// Where the tensors of an arena begin: what a codec must know that keeps one tensor's scale out of another's values,
// and that a shard is told of, which knows ranges alone. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/param_layout.h"

namespace syncopate {

// Of a layout's tensors that are no tables: ascending.
using TensorBegins = std::vector<std::uint64_t>;

inline TensorBegins tensor_begins(const ParamLayout& layout) {
  TensorBegins begins;
  for (const TensorSpec& tensor : std::span(layout.tensors()).subspan(layout.tables().size())) {
    begins.push_back(tensor.range.begin);
  }
  return begins;
}

}  // namespace syncopate
