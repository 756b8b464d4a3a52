// What a run cannot have whose workers train parts of the model: stages of pipelines, or parts of layers. Pure.
#pragma once

#include "common/status.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// Fails with invalid argument, naming the option. A run without such parts is well.
Status validate_division(const ResolvedRun& config);

}  // namespace syncopate::experiments
