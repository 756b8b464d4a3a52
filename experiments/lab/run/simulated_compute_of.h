// How long computing, updates, sums and codecs take in a simulated run, and where that comes from.
#pragma once

#include "common/param_layout.h"
#include "common/status.h"
#include "experiments/cluster/simulated/simulated_host.h"
#include "experiments/cluster/simulated/solo_times.h"
#include "experiments/config/resolved_run.h"
#include "experiments/lab/report/summary_json.h"

namespace syncopate::experiments {

// Settles what config.compute and config.processing ask for, measuring this machine where that is asked for, and says
// in `facts` where each figure comes from. `layout` is the model's. Fails with invalid argument for a profile of other
// tensors, and a rate where nobody knows the FLOPs. A program of the person's own whose computing is to be measured has
// no times here: its ranks are timed in each step.
Result<SimulatedCompute> simulated_compute_of(const ResolvedRun& config, const ParamLayout& layout, SoloTimes& solo,
                                              SimulationFacts& facts);

// Returns the seconds that end a wait. The usual ones are too short where the weights of many workers pass one link, as
// those of one server do; virtual ones cost nobody anything.
double simulated_timeout_of(const ResolvedRun& config, const ParamLayout& layout);

}  // namespace syncopate::experiments
