// The values that a RunConfig implies where they were left open, for resolve() and for the rules, which run before it.
// Pure.
#pragma once

#include "common/clock.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

// Returns the number of workers: 1 under local, one for each slot if hosts are given, else 2.
int workers_of(const RunConfig& config);
// Returns whether NCCL sums the gradients: because it was asked for, or because auto chooses it on GPUs.
bool sums_in_nccl(const RunConfig& config);
// Returns the longest delay of a straggler in one step: half of the timeout, since the others wait for it meanwhile.
Duration longest_delay(const RunConfig& config);

}  // namespace syncopate::experiments
