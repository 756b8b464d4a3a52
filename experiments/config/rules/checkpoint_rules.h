// Which runs can write checkpoints and resume from them, and why others cannot. Pure.
#pragma once

#include "experiments/config/run_config.h"

namespace syncopate::experiments {

// For validate(): returns what is wrong, and what would be right.
Status validate_checkpoints(const RunConfig& config);

}  // namespace syncopate::experiments
