// AggregatingStrategy: a worker of parameter servers on a host whose workers push one sum, as BytePS does.
//
//   each worker   backward finishes a chunk ─▶ all sum a part of it each, in rank order, in the leader's memory
//   leader        pushes the sum, and takes the next weights (PsStrategy); backward goes on meanwhile
//   each worker   finish_step: waits until the leader has all weights, which all read where they lie
//
// The leader, the lowest worker of the host, alone is a member of the servers' group. So a host's link carries one
// gradient up and one set of weights down in each step, however many workers the host has. All workers must take part
// in each step; the loss of one ends the others' waits with a failure.
//
// The leader writes a chunk's new weights after all of its host have finished the chunk's gradient, when nobody reads
// them any more in this step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "allreduce/collective/communication_thread.h"
#include "allreduce/collective/direct_collective.h"
#include "common/activity.h"
#include "common/clock.h"
#include "common/sync_strategy.h"
#include "common/threads.h"
#include "ps/client/ps_strategy.h"
#include "ps/policy/sharding.h"

namespace syncopate::experiments {

struct AggregationOptions {
  // Which chunks there are, as the leader's strategy has it.
  std::size_t shards = 1;
  ps::Sharding sharding;
  Duration timeout = std::chrono::seconds(30);  // of each wait within the host
  // While the leader waits for servers, the others wait for it, for so much longer than the timeout: it is then the
  // leader who says first for whom.
  Duration longer_than_leader = std::chrono::seconds(1);
  Threads* threads = &os_threads();
};

class AggregatingStrategy final : public SyncStrategy, public Resumable {
 public:
  // `inside` connects the workers of the host. `servers` is the leader's strategy, whose arenas are `inside`'s memory
  // and whose forward pass does not overlap; null on the other workers. `inside`, `clock` and `activity` (may be null)
  // must outlive this object.
  AggregatingStrategy(const AggregationOptions& options, allreduce::DirectCollective& inside,
                      std::unique_ptr<ps::PsStrategy> servers, const Clock& clock, Activity* activity);

  Resumable* resumable() override { return this; }
  // Waits for all workers of the host. Fails with invalid argument if there are tables.
  Result<ParamArenas> allocate(const ParamLayout& layout) override;

  // The state is that of the leader's strategy; the others have none.
  Status restore(const TrainingState& state) override;
  Status save(TrainingState& state) const override;

  // Fails with invalid argument, naming the worker, if one of the host has another layout.
  Result<std::vector<Range>> join() override;
  std::int64_t first_step() const override { return first_step_; }

  void begin_step(const StepContext& step) override;
  void gradient_ready(std::size_t bucket) override;
  // Bytes are those between the host and the servers: the leader's. Communication lasts from the first chunk's sum to
  // the last weights.
  Result<SyncStats> finish_step() override;
  Status leave() override;

 private:
  // Sums the bucket's gradients; the leader pushes the sum. One at a time, in the order of backward.
  void sum(std::size_t bucket);
  TimePoint within(Duration timeout) const { return clock_.now() + timeout; }
  void set_activity(const char* operation);

  const AggregationOptions options_;
  allreduce::DirectCollective& inside_;
  const std::unique_ptr<ps::PsStrategy> servers_;
  const Clock& clock_;
  Activity* const activity_;

  ParamLayout layout_;
  std::span<float> gradients_;  // of this worker
  std::vector<Range> buckets_;
  std::int64_t first_step_ = 0;
  std::int64_t steps_done_ = 0;
  StepContext step_;
  TimePoint begin_{};  // of this step's communication
  Status failure_;     // the first of this step's sums; touched by the work of tickets alone until they are done
  std::uint64_t last_ticket_ = 0;
  mutable allreduce::CommunicationThread thread_;  // last: it works on all of the above
};

}  // namespace syncopate::experiments
