// ComputeTimes: how long a worker of a simulated cluster computes for each part of a step.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/param_layout.h"
#include "common/status.h"
#include "experiments/config/resolved_run.h"
#include "worker/data/dataset.h"
#include "worker/model.h"

namespace syncopate::experiments {

struct ComputeTimes {
  std::vector<Duration> forward;   // by tensor: from reading it to reading the next one
  std::vector<Duration> backward;  // by tensor: from the gradient of the one behind it to this one's

  Duration forward_pass() const;
  Duration step() const;
};

// Divides the time of a step: a third is forward's, and of the rest each tensor has a part in proportion to its size.
ComputeTimes divided(Duration step, const ParamLayout& layout);

// SoloTimes: what models take on this machine when nothing else runs. Each is measured once, when it is first asked
// for, on the run's data: the medians of some steps after some others.
class SoloTimes {
 public:
  Result<ComputeTimes> of(const ResolvedRun& config);

 private:
  std::map<std::string, ComputeTimes> measured_;  // by all that they depend on
};

// Returns a model that computes as `model` does and takes `times` for it, by having `sleep` called for each part before
// its result is there.
std::unique_ptr<worker::Model> timed_model(std::unique_ptr<worker::Model> model, ComputeTimes times,
                                           std::function<void(Duration)> sleep);

}  // namespace syncopate::experiments
