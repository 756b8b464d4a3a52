// ShardedStrategy: synchronous data parallelism in which each worker updates a part of the weights, and has what the
// optimizer remembers of that part alone: the optimizer's state, from stage 2 on gradients, and at stage 3 weights, are
// sharded over the workers (Rajbhandari et al. 2020, "ZeRO: memory optimizations toward training trillion parameter
// models", section 5). A parameter server whose servers are the workers.
//
//   backward    reduce_scatter of each bucket: its mean comes to who owns a part of it
//   finish_step the update of one's own part of each bucket
//   forward     all_gather of each bucket's new weights, while layers before compute; weights_needed waits for it
//
// Where ranks work in each other's memory, and without overlap, finish_step waits for all gathers. Their bytes count in
// the step in which they were waited for: the first has none. A step sends what an allreduce sends, 2(n-1)/n of the
// weights, of which half can hide behind forward (Zhang et al. 2023, "DeAR: accelerating distributed deep learning with
// fine-grained all-reduce pipelining", section 3). At stage 3 each pass gathers the weights of a layer before it reads
// them, while layers before it compute, and gives them back behind it, in place of the gather at the end: 3(n-1)/n,
// less the layers that end forward and begin backward. The order of layers is that of the step before. With a
// collective that sums in the same order, ring or direct, weights have the bits that AllReduceStrategy leaves.
//
// Where a batch passes in microbatches, each pass does all of this but the update: its gradients are summed over the
// workers, and added to those of the passes before at their owner, as Fully Sharded Data Parallel does without no_sync
// (Zhao et al. 2023, section 5.4). Each is one more collective for each layer, in which workers meet. With OnDemand
// they meet once a step instead: see on_demand_exchange.h.
#pragma once

#include <memory>

#include "allreduce/collective.h"
#include "allreduce/collective/collective_activity.h"
#include "allreduce/strategy/on_demand_exchange.h"
#include "common/optimizer/optimizer.h"
#include "common/sync_strategy.h"
#include "common/threads.h"

namespace syncopate::allreduce {

// Which part of the state a worker has only its share of.
enum class ShardingStage {
  kOptimizer = 1,  // what the optimizer remembers
  // And gradients: the pages of what others own are given back to the kernel once they have it, and backward waits
  // where it would be more than a few buckets ahead. Without overlap, a step has all gradients at once.
  kGradients = 2,
  // And weights: the pages of others' parts are given back, too. Without overlap, none are gathered ahead.
  kWeights = 3,
};

// Under kWeights layers are gathered ahead until they have the bytes of so many buckets.
inline constexpr std::size_t kBucketsAhead = 4;

struct ShardedOptions {
  OptimizerConfig optimizer;  // of a rule that updates each element by itself (is_layerwise)
  ShardingStage stage = ShardingStage::kOptimizer;
  std::size_t bucket_bytes = 1 << 20;
  int passes = 1;  // calls of gradient_ready for each bucket and step; above 1 and the next: kWeights alone
  OnDemandExchange::Endpoints on_demand = {};  // in place of the collective's halves; null: none
  bool overlap = true;                         // false: nothing is sent before backward has ended
  // Ranks tell each other at which learning rate they make each step, and fail with invalid argument, naming two of
  // them, where these differ.
  bool agrees_on_rates = false;
  Duration timeout = std::chrono::seconds(30);  // for each wait
  CollectiveActivity* activity = nullptr;       // records every operation; must outlive the strategy
  Threads* threads = &os_threads();             // has the thread that sums beside backward; must outlive the strategy
};

// At stage 3 the chief's initial weights are shared bucket by bucket, and read between steps through gather_weights.
//
// save() adds this worker's part, and all workers' parts together are the state; restore() takes it from the state of
// any number of workers, and also from that of AllReduceStrategy. A step that has failed cannot be undone: save then
// fails with invalid argument. Row-sparse tables are refused.
//
// `collective`, which must have reduce_scatter and all_gather, and `clock` must outlive the strategy.
std::unique_ptr<SyncStrategy> make_sharded_strategy(Collective& collective, const ShardedOptions& options,
                                                    const Clock& clock);

}  // namespace syncopate::allreduce
