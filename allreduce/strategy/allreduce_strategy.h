// AllReduceStrategy: synchronous data parallelism. Gradients are summed over all workers bucket by bucket, while
// backward still runs unless that is not wanted; every worker then applies the same update with the mean.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "allreduce/collective.h"
#include "allreduce/collective/collective_activity.h"
#include "allreduce/strategy/sparse_exchange.h"
#include "common/codec/codec_config.h"
#include "common/optimizer/optimizer.h"
#include "common/sync_strategy.h"

namespace syncopate::allreduce {

struct AllReduceOptions {
  OptimizerConfig optimizer;
  std::size_t bucket_bytes = 1 << 20;  // 0: the size is searched for in the first steps (bucket_search.h)
  // Told what the search has come to, or that the run was too short for it. From the compute thread; may be null.
  std::function<void(const std::string& finding)> on_search_end = nullptr;
  // False: nothing is sent before backward has ended. The sums are the same; how much overlap gains is then to be seen.
  bool overlap = true;
  // How gradients are compressed on their way, but for those of row-sparse tables. With codec.whole_updates, 1-bit Adam
  // begins behind so many updates (Tang et al. 2021, algorithm 1): optimizer.takes_momentum is then to be set, and
  // optimizer.frozen_after to be as many.
  CodecConfig codec;
  std::uint64_t seed = 1;  // what the codec draws from, and what rows of tables begin with; the same on every rank
  // Of row-sparse tables:
  SparseExchange sparse_exchange = SparseExchange::kAuto;
  std::function<void(const std::string& finding)> on_exchange_found = nullptr;  // as ReplicatedTablesOptions::on_found
  Duration timeout = std::chrono::seconds(30);                                  // of every wait
  // The ranks in the job of the collective's ranks, ascending; empty: the same. What is a worker's own is kept under
  // them.
  std::vector<int> workers = {};
  // Updates are made only once all gradients of a step have been summed: a step that fails has changed nothing, and
  // save() gives the state after the last one that has not failed.
  bool elastic = false;
  // Told where training goes on rather than begins: with which step, and who was given the state by whom. From the
  // compute thread; may be null.
  std::function<void(const std::string& finding)> on_going_on = nullptr;
  CollectiveActivity* activity = nullptr;  // is told of every operation; outlives the strategy
};

// What is to be said of its restore, join and save beyond sync_strategy.h:
// - join agrees on the furthest step that any member has finished, and gives the state after it to members that have
//   nothing, or lack that step (state_agreement.h). Invalid argument where the members' states are not of one job.
//   Until it has succeeded there is nothing to be saved: what was restored still holds.
// - save after a failure needs `elastic`, and a state that is empty or was cleared. The collective has been interrupted
//   before, since work that is queued is waited for. Invalid argument where a step's update has failed in its midst,
//   as it does where there is no memory for rows.
// - What error feedback keeps back is each worker's own: who begins anew begins with none, and that of a lost worker is
//   lost with it.
//
// `collective` and `clock` must outlive the strategy.
std::unique_ptr<SyncStrategy> make_allreduce_strategy(Collective& collective, const AllReduceOptions& options,
                                                      const Clock& clock);

}  // namespace syncopate::allreduce
