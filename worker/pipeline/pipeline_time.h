// How long a step of a pipeline takes, by its schedule: what stages compute, and what they wait for each other. Pure.
#pragma once

#include <span>
#include <vector>

#include "worker/pipeline/pipeline_schedule.h"

namespace syncopate::worker {

// All in seconds.
struct StageTimes {
  double forward = 0, backward = 0;  // of a microbatch
  double to_next = 0;  // in which a link carries a microbatch's activations to the next stage, or their gradient back
  double begins = 0;   // nothing is done before
};

// Returns when each stage has done the last of its actions, from the step's beginning. A stage sends and receives
// beside its computing, through a link that carries one message at a time each way; a message arrives `delay` seconds
// after it has been carried.
std::vector<double> pipeline_ends(PipelineSchedule schedule, int microbatches, std::span<const StageTimes> stages,
                                  double delay);

}  // namespace syncopate::worker
