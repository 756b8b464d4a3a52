// What a run whose workers are stages of pipelines cannot have. Pure.
#pragma once

#include "common/status.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// For check_rules(): returns what is wrong, and what would be right.
Status validate_pipeline(const ResolvedRun& config);

}  // namespace syncopate::experiments
