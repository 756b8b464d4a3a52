// SoloTimes: what this machine takes for a run's computing when nothing else runs, measured once for all runs that
// compute alike.
#pragma once

#include <map>
#include <string>

#include "common/status.h"
#include "experiments/cluster/measurement/compute_times.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

class SoloTimes {
 public:
  // The model's passes, on the run's data.
  Result<ComputeTimes> computing(const ResolvedRun& config);
  // What is done with gradients and weights, laid out so, besides sending them. PowerSGD's products take no time.
  ProcessingTimes processing(const ResolvedRun& config, const ParamLayout& layout);

 private:
  // By all that they depend on.
  std::map<std::string, ComputeTimes> computing_;
  std::map<std::string, ProcessingTimes> processing_;
};

}  // namespace syncopate::experiments
