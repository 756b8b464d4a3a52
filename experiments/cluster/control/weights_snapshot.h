// WeightsSnapshot: weights as they were at one moment, on their way to be evaluated. Plain data.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "common/clock.h"
#include "experiments/cluster/control/snapshot_layout.h"

namespace syncopate::experiments {

// The final weights come behind all points at which weights are evaluated (experiments/config/evaluation_points.h).
inline constexpr std::int64_t kFinalPoint = std::numeric_limits<std::int64_t>::max();

// A stamped copy of the weights, laid out as snapshot_layout says, and, on its way to the evaluator, the mean of the
// workers' local states.
struct WeightsSnapshot {
  std::int64_t point = 0;
  std::int64_t steps_done = 0;
  TimePoint taken{};
  bool final = false;
  std::vector<float> weights;
  std::vector<float> local_state = {};
  TableKeys rows = {};  // of row-sparse tables
};

}  // namespace syncopate::experiments
