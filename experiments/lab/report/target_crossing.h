// When a run has first come to the figure that it was to reach, from its evaluations. Pure.
#pragma once

#include <optional>
#include <span>

#include "experiments/lab/report/run_report.h"

namespace syncopate::experiments {

struct TargetCrossing {
  double seconds = 0;  // of training
  double samples = 0;  // seen by all workers
  // How far the two evaluations lie apart between which it was crossed: it is not known better than that.
  double resolution_seconds = 0;
  double resolution_samples = 0;
};

// The first crossing: of the first evaluation at `target` (of the headline figure, test_figures.h) or above and the one
// before it, along the straight line between them. Where the very first evaluation is above it, nothing is known of
// before: its own time, and all of that as the resolution. None: no evaluation has come to it.
std::optional<TargetCrossing> target_crossing(std::span<const EvalRecord> evals, double target);

}  // namespace syncopate::experiments
