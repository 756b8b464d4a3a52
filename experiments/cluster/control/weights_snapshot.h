// WeightsSnapshot: a copy of the weights at one moment, which is sent for evaluation. Plain data.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "common/clock.h"
#include "experiments/cluster/control/snapshot_layout.h"

namespace syncopate::experiments {

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
