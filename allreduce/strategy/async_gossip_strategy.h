// AsyncGossipStrategy: workers that make updates of their own and average their weights with one other at a time,
// without ever waiting for it to come to the same step: AD-PSGD (Lian, Zhang, Zhang and Liu 2018, "Asynchronous
// decentralized parallel stochastic gradient descent", ICML, algorithm 1).
//
//   compute thread                                     communication thread (gossip_meetings.h)
//     gradient at the copy, which nothing changes        active: offers the weights, takes the mean back
//     update of the replica, copied anew                 passive: averages with whoever offers, and answers
//             both change one replica (shared_replica.h), each atomically, in whatever order they come
//
// So a gradient is applied to what the weights have become since it was begun, by averages of others' weights. Every
// `period` steps of its own an active worker asks for a meeting, once a step in the paper; a passive one answers as
// often as it is asked. Meetings overlap the next gradient. A worker waits before an update for its own meeting that is
// under way, or for an average that is being made, and for nothing else: how slow the partner's compute is does not
// matter, since its communication thread answers.
//
// Differences from the paper. The graph is the complete bipartite one, not a ring. An active worker makes no update
// between its offer and the mean: the paper's averages are atomic, too. Meetings go by steps, where the paper's
// communication threads run as fast as they can. Rates are constant over replicas, and the optimizer may be any: what
// it remembers stays with its worker.
//
// Nothing is saved: at no time do replicas and messages under way stand for one state of the job. leave() is a mean of
// all; after it all hold the same weights, bit by bit.
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
#include "common/transport/transport.h"

namespace syncopate::allreduce {

struct AsyncGossipOptions {
  OptimizerConfig optimizer;
  std::int64_t period = 1;                      // an active worker's steps from one meeting to the next; at least 1
  std::uint64_t seed = 1;                       // partners are drawn from it
  Duration timeout = std::chrono::seconds(30);  // of every wait but that for slower workers to finish
  CollectiveActivity* activity = nullptr;       // told of what all ranks do together
  Activity* progress = nullptr;                 // told of the wait for slower workers; both may be null, and outlive it
};

class AsyncGossipStrategy final : public SyncStrategy {
 public:
  // `collective`, for what all do together at the beginning and in the end, and `meetings` may be channels of one
  // endpoint (transport_channels.h): they are never used at once. They have the same ranks, memory of one is memory of
  // the other, and both outlive the strategy, as the clock does.
  AsyncGossipStrategy(Collective& collective, Transport& meetings, const AsyncGossipOptions& options,
                      const Clock& clock);

  Result<ParamArenas> allocate(const ParamLayout& layout) override;
  // One bucket: nothing is sent while backward runs but what meetings are about. Meetings begin here.
  Result<std::vector<Range>> join() override;
  void begin_step(const StepContext& step) override { step_ = step; }
  void gradient_ready(std::size_t /*bucket*/) override {}
  // Staleness: averages that changed the replica between the copy that the gradient is of and its update.
  Result<SyncStats> finish_step() override;
  // Waits until nobody trains any more, however long that takes; then all that follows has deadlines.
  Status leave() override;
  // This worker's own: nobody has the mean of all before leave().
  JobWeights job_weights() const override { return {}; }

  // Messages that came again, and were dropped. Any thread, after join.
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
  std::int64_t steps_alone_ = 0;  // since this worker has asked for a meeting
  std::optional<SharedReplica> shared_;
  std::optional<GossipMeetings> meetings_;  // on top of it
};

}  // namespace syncopate::allreduce
