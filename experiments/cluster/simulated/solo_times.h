// SoloTimes: what this machine takes for a run's computing when nothing else runs: the model's passes, and what is done
// with gradients and weights besides sending them.
#pragma once

#include <map>
#include <string>

#include "common/status.h"
#include "experiments/cluster/simulated/compute_times.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

class SoloTimes {
 public:
  struct Figures {
    ComputeTimes times;
    ProcessingTimes processing;
  };

  // Measures, on the run's data, the medians of some steps after some others; once for all runs that compute alike.
  // PowerSGD's products are not measured, and take no time.
  Result<Figures> of(const ResolvedRun& config);

 private:
  std::map<std::string, Figures> measured_;  // by all that they depend on
};

}  // namespace syncopate::experiments
