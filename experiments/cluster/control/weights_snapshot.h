// WeightsSnapshot: a copy of the weights at one moment, which is sent for evaluation: the dense ones, as
// they lie in the model's arena, followed by some rows of each row-sparse table.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "common/clock.h"
#include "common/param_layout.h"

namespace syncopate::experiments {

// Ascending row numbers, for each table of a layout; empty for a layout without tables.
using TableKeys = std::vector<std::vector<RowKey>>;

// Returns the layout of the snapshot, in which all tensors are dense: first that of the model without tables, then each
// table as a tensor with as many rows as `rows` names of it, but at least one.
ParamLayout snapshot_layout(const ParamLayout& layout, const TableKeys& rows);

// The point of the final weights, which is after all points of evaluation (experiments/config/evaluation_points.h).
inline constexpr std::int64_t kFinalPoint = std::numeric_limits<std::int64_t>::max();

// A copy of the weights with its stamp, laid out as snapshot_layout says. On its way to the evaluator it also has the
// mean of the workers' local states.
struct WeightsSnapshot {
  std::int64_t point = 0;
  std::int64_t steps_done = 0;
  TimePoint taken{};
  bool final = false;
  std::vector<float> weights;
  std::vector<float> local_state = {};
  TableKeys rows = {};  // which rows of row-sparse tables it has
};

}  // namespace syncopate::experiments
