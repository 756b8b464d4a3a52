// What works with compressed gradients, and what does not. Pure.
#pragma once

#include "common/status.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// For check_rules(): says which options cannot work with --compress, why, and what would be right.
Status validate_compression(const ResolvedRun& config);

}  // namespace syncopate::experiments
