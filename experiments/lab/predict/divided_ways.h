// The ways to run a job that divide its model among workers, by their closed forms. Pure.
#pragma once

#include <vector>

#include "experiments/lab/predict/simulated_search.h"
#include "prediction/advice/search.h"

namespace syncopate::experiments {

struct DividedWays {
  std::vector<prediction::FormedWay> ways;
  std::vector<RefusedWay> refused;
};

// Returns all of so many workers, with each bucket of the request: pipelines of each number of stages that divides the
// workers, by each schedule that an allreduce has but gpipe, whose bubble is that of 1f1b, of as many microbatches as
// is usual, or the nearest number that can be, and twice and four times as many, where they divide a pipeline's batch;
// and layers in each number of parts that divides the workers. Nothing for a job that knows no layers. What cannot be,
// as more stages than there are layers, is refused, once for each number of stages and of parts, or for each schedule.
DividedWays divided_ways(const AdviseRequest& request, int workers);

}  // namespace syncopate::experiments
