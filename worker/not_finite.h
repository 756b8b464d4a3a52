// NotFinite: what in a step was the first that is not a finite number, and where.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "common/on_nan.h"
#include "common/param_layout.h"

namespace syncopate::worker {

struct NotFinite {
  // In the order in which one makes the next: what is told is the first that is not finite.
  enum class Quantity { kRate, kWeights, kBatch, kGradient, kLoss };
  std::int64_t step = 0;  // of the worker
  Quantity quantity = Quantity::kLoss;
  std::string tensor = {};  // of weights and gradients
  double value = std::numeric_limits<double>::quiet_NaN();
  double loss = 0;  // of the step; not finite either, or it is finite, or 0 where it is not known
};

// Returns "the gradient of dense1.weight is nan (loss inf)".
std::string to_text(const NotFinite& what);

// Returns whether training ends by it. Where weights or the rate are not finite, no step that is left out mends them.
bool ends_run(OnNan on_nan, NotFinite::Quantity quantity);

// Returns the first tensor of the layout that has such a value, and that. `values` is an arena; of a table, only the
// rows that the step touches are looked at.
struct FoundTensor {
  std::string name;
  double value = 0;
};
std::optional<FoundTensor> tensor_not_finite(const ParamLayout& layout, std::span<const float> values,
                                             std::span<const RowKeys> rows);

}  // namespace syncopate::worker
