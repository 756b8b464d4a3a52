// Which runs can leave out a step in which something is not a finite number (--on-nan=skip).
#pragma once

#include "common/status.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// Fails with invalid argument, saying what would be right, if the run is to leave such steps out and cannot.
Status validate_health(const ResolvedRun& config);

}  // namespace syncopate::experiments
