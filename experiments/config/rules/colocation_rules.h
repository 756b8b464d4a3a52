// Servers in the processes of workers, and spare ones besides.
#pragma once

#include "common/status.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// For check_rules(), once hosts have slots for all workers: says what servers in workers' processes cannot be combined
// with, and where spare ones cannot have the parts that fill all links alike (prediction::byteps_parts).
Status validate_colocation(const ResolvedRun& config);

}  // namespace syncopate::experiments
