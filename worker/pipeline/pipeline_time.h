// How long a step of a pipeline takes, by its schedule: what stages compute, and what they wait for each other. Pure.
#pragma once

#include <span>
#include <vector>

#include "worker/pipeline/pipeline_schedule.h"

namespace syncopate::worker {

// What a chunk of a stage takes, or a stage without chunks. All in seconds.
struct StageTimes {
  double forward = 0, backward = 0;  // of a microbatch
  double weights = 0;                // the part of backward that may wait, if the schedule splits it
  double to_next = 0;  // in which a link carries a microbatch's activations to the next chunk, or their gradient back
};

// Returns when each stage has done the last of its actions, from the step's beginning, if nothing is done before it
// `begins` (by stage; empty: 0). `chunks` are those of the whole chain, S times the place's chunks; the place's `stage`
// is not looked at. A stage sends and receives beside its computing, through a link that carries one message at a time
// each way; a message arrives `delay` seconds after it has been carried.
std::vector<double> pipeline_ends(const PipelinePlace& pipeline, std::span<const StageTimes> chunks, double delay,
                                  std::span<const double> begins = {});

// Returns how long a step takes of a pipeline that stashes weights, once all stages have a batch. `behind`: what a
// stage takes for its update, after its passes (by stage; empty: 0). Where links are free when they are needed, m steps
// are as long as all passes, updates and messages of a batch that goes through m stages in a row and comes back: a step
// is the greatest mean of these over any stages in a row.
double pipeline_period(const PipelinePlace& pipeline, std::span<const StageTimes> stages, double delay,
                       std::span<const double> behind = {});

}  // namespace syncopate::worker
