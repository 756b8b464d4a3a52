// AllReduceStrategy: synchronous data parallelism. Gradients are summed over all workers bucket by bucket while
// backward still runs; every worker then applies the same update with the mean.
#pragma once

#include <memory>

#include "allreduce/collective.h"
#include "allreduce/collective_activity.h"
#include "common/optimizer.h"
#include "common/sync_strategy.h"

namespace syncopate::allreduce {

struct AllReduceOptions {
  OptimizerConfig optimizer;
  std::size_t bucket_bytes = 1 << 20;
  Duration timeout = std::chrono::seconds(30);  // of every wait
  CollectiveActivity* activity = nullptr;       // is told of every operation; outlives the strategy
};

// `collective` and `clock` must outlive the strategy.
std::unique_ptr<SyncStrategy> make_allreduce_strategy(Collective& collective, const AllReduceOptions& options,
                                                      const Clock& clock);

}  // namespace syncopate::allreduce
