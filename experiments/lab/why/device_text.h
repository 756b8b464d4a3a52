// What `why` says of a run on GPUs beside its waterfall: each phase by the GPU's clock, and its least time. Pure.
#pragma once

#include <string>

#include "experiments/lab/why/explained_run.h"

namespace syncopate::experiments {

// Returns lines for people; empty for a run on processors.
std::string device_text(const ExplainedRun& run);

// Whether the host took about as long to give the GPU its work, call by call, as the GPU took for it: then the GPU may
// have waited for each call.
bool waits_for_launches(const ExplainedRun& run);

}  // namespace syncopate::experiments
