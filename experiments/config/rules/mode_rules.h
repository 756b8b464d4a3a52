// What works with modes between an allreduce and servers: shares of the state, servers of tables alone, servers in
// workers' processes, asynchronous gossip. Pure.
#pragma once

#include "common/status.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// For check_rules(): says which options cannot work with the mode, why, and what would be right.
Status validate_mode(const ResolvedRun& config);

}  // namespace syncopate::experiments
