// Where --aggregation=host has a meaning and is built. Pure.
#pragma once

#include "common/status.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// For check_rules(): says why the workers of a host cannot push one sum in this run, and what would be right.
Status validate_aggregation(const ResolvedRun& config);

}  // namespace syncopate::experiments
