// ComputeTimes: how long a worker of a simulated cluster computes for each part of a step.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/clock.h"
#include "common/param_layout.h"
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

// What a process takes for the rest that it does with bytes (Clock::processed), in seconds a byte; zero: no time.
struct ProcessingTimes {
  double sum = 0;
  double update = 0;
  double encode = 0;
  double decode = 0;
};

// Returns a model that computes as `model` does and takes `times` for it, times what the batch costs, by having `sleep`
// called for each part before its result is there.
std::unique_ptr<worker::Model> timed_model(std::unique_ptr<worker::Model> model, ComputeTimes times,
                                           std::function<void(Duration)> sleep);

}  // namespace syncopate::experiments
