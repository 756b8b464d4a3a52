// Which of a worker's steps the weights have learnt from. Pure.
#pragma once

#include <span>
#include <vector>

#include "common/step_record.h"

namespace syncopate::experiments {

// Returns the steps that were not undone, the last first. `steps` are one worker's, in the order in which they were
// made, and outlive what is returned. A later record of the same step or of an earlier one says that the worker went
// back, and that its steps from there on were undone.
std::vector<const StepRecord*> kept_steps(std::span<const StepRecord> steps);

// Returns the part of a step's gradient, 0 to 1, that is in an update: all of it, but for what came too late for its
// update and was dropped, and nothing of a step that was skipped.
double used_part(const StepRecord& step);

}  // namespace syncopate::experiments
