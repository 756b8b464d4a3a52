// AsyncGossipStrategy: workers make updates of their own and average their weights with one other at a time, without
// waiting for it to reach the same step: AD-PSGD (Lian, Zhang, Zhang and Liu 2018, "Asynchronous decentralized parallel
// stochastic gradient descent", ICML, algorithm 1).
//
//   compute thread                                     communication thread (gossip_meetings.h)
//     gradient at the copy, which nothing changes        active: offers the weights, takes the mean back
//     update of the replica, copied anew                 passive: averages with whichever rank offers, and responds
//             both change one replica (shared_replica.h), each atomically, in any order
//
// So a gradient is applied to weights that may since have changed by averages with others' weights. An active worker
// asks for a meeting every `period` of its own steps, once per step in the paper; a passive one responds whenever it is
// asked. Meetings overlap the next gradient. Before an update a worker waits only for its own meeting that is under
// way, or for an average that is being made. The partner's compute speed does not matter, since its communication
// thread responds.
//
// Differences from the paper. The graph is the complete bipartite one, not a ring. An active worker makes no update
// between its offer and the mean: the paper's averages are atomic, too. Meetings are counted in steps, whereas the
// paper's communication threads run as fast as they can. Rates are constant over replicas, and the optimizer may be
// any: its state stays with its worker.
//
// Nothing is saved: at no time do the replicas and the messages in flight make up one state of the job. leave() takes a
// mean of all; after it all hold the same weights, bit by bit.
#pragma once

#include <cstdint>
#include <optional>

#include "allreduce/collective.h"
#include "allreduce/collective/collective_activity.h"
#include "allreduce/strategy/gossip_meetings.h"
#include "allreduce/strategy/shared_replica.h"
#include "common/activity.h"
#include "common/optimizer/optimizer.h"
#include "common/os/aligned_buffer.h"
#include "common/sync_strategy.h"
#include "common/threads.h"
#include "common/transport/transport.h"

namespace syncopate::allreduce {

struct AsyncGossipOptions {
  OptimizerConfig optimizer;
  std::int64_t period = 1;                      // steps of an active worker between meetings; at least 1
  std::uint64_t seed = 1;                       // seeds the choice of partners
  Duration timeout = std::chrono::seconds(30);  // for each wait, except that for slower workers to finish
  CollectiveActivity* activity = nullptr;       // records the operations of all ranks
  Activity* progress = nullptr;                 // records the wait for slower workers; both may be null, and must
                                                // outlive it
  Threads* threads = &os_threads();             // has the communication thread; must outlive the strategy
};

class AsyncGossipStrategy final : public SyncStrategy {
 public:
  // `collective`, used by all ranks at the beginning and at the end, and `meetings` may be channels of one endpoint
  // (transport_channels.h): they are never used at once. They must have the same ranks, and memory of one must be
  // memory of the other. They and the clock must outlive the strategy.
  AsyncGossipStrategy(Collective& collective, Transport& meetings, const AsyncGossipOptions& options,
                      const Clock& clock);

  Result<ParamArenas> allocate(const ParamLayout& layout) override;
  // Returns one bucket: nothing is sent during backward except by meetings, which begin here.
  Result<std::vector<Range>> join() override;
  void begin_step(const StepContext& step) override { step_ = step; }
  void gradient_ready(std::size_t /*bucket*/) override {}
  // The staleness is the number of averages that changed the replica between the copy that the gradient was computed
  // from and its update.
  Result<SyncStats> finish_step() override;
  // Waits until no worker trains any more, however long that takes. All waits that follow have deadlines.
  Status leave() override;
  // This worker's own weights: no rank has the mean of all before leave().
  JobWeights job_weights() const override { return {}; }

  // The number of repeated messages that were dropped. Any thread, after join.
  std::int64_t dropped() const { return meetings_ ? meetings_->dropped() : 0; }

 private:
  using Stage = CollectiveOperation::Stage;

  TimePoint deadline() const { return clock_.now() + options_.timeout; }
  Status watch(const char* name, Stage stage, const std::function<Status()>& work);
  bool is_to_meet();

  Collective& collective_;
  Transport& transport_;
  const AsyncGossipOptions options_;
  Optimizer optimizer_;
  const Clock& clock_;
  ParamLayout layout_;
  std::span<float> replica_;  // the collective's memory
  AlignedBuffer weights_;     // the copy that gradients are computed from
  AlignedBuffer gradients_;
  std::optional<OptimizerState> state_;
  StepContext step_;
  std::int64_t steps_alone_ = 0;  // since this worker last asked for a meeting
  std::optional<SharedReplica> shared_;
  std::optional<GossipMeetings> meetings_;  // uses shared_
};

}  // namespace syncopate::allreduce
