// The order in which a worker of a run takes its samples, from the run's configuration. Pure.
#pragma once

#include <cstdint>

#include "experiments/config/resolved_run.h"
#include "worker/data/batch_loader.h"

namespace syncopate::experiments {

// Returns the order of worker `rank` over a training set of `samples` samples, without parts by label, which are the
// data's.
inline worker::BatchOrder batch_order_of(const ResolvedRun& config, std::int64_t samples, int rank = 0) {
  return {.seed = config.seed,
          .dataset_size = samples,
          .batch_size = replica_batch(config),
          .rank = model_place(config, rank).replica,
          .workers = model_replicas(config),
          .shuffle = shuffle_of(config),
          .costs = config.sample_costs,
          .drop_last = config.drop_last};
}

}  // namespace syncopate::experiments
