// AllReduceStrategy: synchronous data parallelism. Gradients are summed over all workers bucket by bucket, during
// backward unless overlap is off; every worker then applies the same update with the mean.
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
#include "common/threads.h"

namespace syncopate::allreduce {

struct AllReduceOptions {
  OptimizerConfig optimizer;
  std::size_t bucket_bytes = 1 << 20;  // 0: searches for the size in the first steps (bucket_search.h)
  // Receives the result of the search, or that the run was too short for it. Called on the compute thread; may be null.
  std::function<void(const std::string& finding)> on_search_end = nullptr;
  // False: nothing is sent before backward has ended. The sums are the same; comparing the two shows the gain of
  // overlap.
  bool overlap = true;
  // How gradients are compressed when sent, except those of row-sparse tables. With codec.whole_updates, 1-bit Adam
  // begins after that many updates (Tang et al. 2021, algorithm 1): optimizer.takes_momentum must then be set, and
  // optimizer.frozen_after must be the same number.
  CodecConfig codec;
  std::uint64_t seed = 1;  // seeds the codec and the first values of tables' rows; the same on every rank
  // For row-sparse tables:
  SparseExchange sparse_exchange = SparseExchange::kAuto;
  std::function<void(const std::string& finding)> on_exchange_found = nullptr;  // as ReplicatedTablesOptions::on_found
  Duration timeout = std::chrono::seconds(30);                                  // for each wait
  // The workers, in the job, that the collective's ranks are, ascending; empty: the same numbers. A worker's own state
  // is saved under them.
  std::vector<int> workers = {};
  // Updates are made only once all gradients of a step have been summed: a step that fails has then changed nothing,
  // and save() gives the state after the last successful step.
  bool elastic = false;
  // A step that a rank has marked (common/left_out_step.h) makes no update on any. Without tables, and with no codec
  // that keeps something of a gradient for the next.
  bool leaves_out = false;
  // Ranks prove in each step that they make it at the same learning rate: finish_step fails with invalid argument, on
  // all of them, before anything is updated, and names two that differ. The rates travel behind the first bucket, or,
  // as a codec would alter them, before it.
  bool agrees_on_rates = false;
  // Called if training goes on rather than begins, with the step it goes on from, and who was given the state by whom.
  // On the compute thread; may be null.
  std::function<void(const std::string& finding)> on_going_on = nullptr;
  CollectiveActivity* activity = nullptr;  // records every operation; must outlive the strategy
  Threads* threads = &os_threads();        // has the thread that reduces beside backward; must outlive the strategy
};

// What restore, join and save do beyond sync_strategy.h:
// - join agrees on the furthest step that any member has finished, and gives the state after it to members that have
//   nothing, or lack that step (state_agreement.h). It fails with invalid argument if the members' states are not of
//   one job. Until it has succeeded there is nothing to be saved: what was restored still holds.
// - save after a failure needs `elastic`, and a state that is empty or was cleared. The collective must have been
//   interrupted before, since save waits for queued work. It fails with invalid argument if a step's update failed
//   halfway, as it does when there is no memory for rows.
// - The residual of error feedback is each worker's own: a new worker begins with none, and that of a lost worker is
//   lost with it.
//
// `collective` and `clock` must outlive the strategy.
std::unique_ptr<SyncStrategy> make_allreduce_strategy(Collective& collective, const AllReduceOptions& options,
                                                      const Clock& clock);

}  // namespace syncopate::allreduce
