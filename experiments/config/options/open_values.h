// What a RunConfig comes to before resolve() has put in what was left open: for resolve() itself, and for the rules.
// Pure.
#pragma once

#include "common/clock.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

// 1 under local; of several hosts one for each slot; else 2.
int workers_of(const RunConfig& config);
// Whether NCCL sums the gradients: it was asked for, or is what auto means on GPUs.
bool sums_in_nccl(const RunConfig& config);
// The longest that a straggler may be slowed in a step: half of the timeout, since others wait for it meanwhile.
Duration longest_delay(const RunConfig& config);

}  // namespace syncopate::experiments
