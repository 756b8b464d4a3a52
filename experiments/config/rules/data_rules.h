// What the order of samples, and a last batch that is not full, cannot stand beside. Pure.
#pragma once

#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// For check_rules(): says which options cannot work together, why, and what would be right.
Status validate_data_order(const ResolvedRun& config);

}  // namespace syncopate::experiments
