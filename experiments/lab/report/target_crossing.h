// Finds when a run first reached its target figure, from its evaluations. Pure.
#pragma once

#include <optional>
#include <span>

#include "experiments/lab/report/run_report.h"

namespace syncopate::experiments {

struct TargetCrossing {
  double seconds = 0;  // of training
  double samples = 0;  // trained on by all workers
  // The distance between the two evaluations around the crossing; it is not known more precisely than that.
  double resolution_seconds = 0;
  double resolution_samples = 0;
};

// Returns the first crossing, interpolated linearly between the first evaluation at or above `target` (of the headline
// figure, test_figures.h) and the one before it. If the very first evaluation is at or above it, returns that
// evaluation's time, with all of it as the resolution, since nothing is known of the time before. None if no evaluation
// has reached it.
std::optional<TargetCrossing> target_crossing(std::span<const EvalRecord> evals, double target);

}  // namespace syncopate::experiments
