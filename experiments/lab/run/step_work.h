// The work of a run's step on a GPU, counted from its model (worker/counted_step.h), for bounds of its time.
#pragma once

#include <vector>

#include "common/status.h"
#include "experiments/config/resolved_run.h"
#include "prediction/roofline.h"

namespace syncopate::experiments {

struct StepWork {
  std::vector<prediction::DeviceOperation> forward;  // with the loss
  std::vector<prediction::DeviceOperation> backward;
  prediction::DeviceOperation update;  // of all weights, and of the rounded ones where there are any
  double arena_bytes = 0;              // weights, gradients and the optimizer's state
  double activation_bytes = 0;         // what else the model keeps, with two batches of samples

  double memory_bytes() const { return arena_bytes + activation_bytes; }
};

// Counts a step of one worker, in the run's precision, that updates its weights itself. Fails as make_model does, and
// for models that train on processors alone.
Result<StepWork> step_work(const ResolvedRun& config);

}  // namespace syncopate::experiments
