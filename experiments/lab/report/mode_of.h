// The mode of a run as comparisons name it. Pure.
#pragma once

#include <string>

#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// Returns "local", "allreduce", "ps:bounded:4" or, where workers average their weights, for example "allreduce:gossip".
std::string mode_of(const ResolvedRun& config);

}  // namespace syncopate::experiments
