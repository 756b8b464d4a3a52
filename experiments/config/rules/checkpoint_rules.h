// Which runs can write checkpoints and resume from them, and why others cannot. Pure.
#pragma once

#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// For check_rules(): returns what is wrong, and what would be right.
Status validate_checkpoints(const ResolvedRun& config);

}  // namespace syncopate::experiments
