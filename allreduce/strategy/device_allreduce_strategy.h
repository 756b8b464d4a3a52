// DeviceAllReduceStrategy: synchronous data parallelism on devices.
//
// As soon as backward has finished a bucket, its mean over all workers is enqueued on a communication stream, after an
// event, while backward goes on (or, without overlap, after the end of backward); the update of a bucket follows its
// mean. The host enqueues the work and waits for its end once per step.
#pragma once

#include <memory>
#include <vector>

#include "allreduce/device_collective.h"
#include "common/device/device.h"
#include "common/rendezvous.h"
#include "common/sync_strategy.h"

namespace syncopate::allreduce {

struct DeviceAllReduceOptions {
  OptimizerConfig optimizer;
  std::size_t bucket_bytes = 1024 * 1024;
  bool overlap = true;                          // as AllReduceOptions::overlap
  Duration timeout = std::chrono::seconds(30);  // for join, and for each step
};

class DeviceAllReduceStrategy final : public SyncStrategy, public Resumable {
 public:
  // All arguments must outlive the strategy. At `rendezvous` the ranks check that they train the same layout.
  DeviceAllReduceStrategy(DeviceCollective& collective, Device& device, Rendezvous& rendezvous,
                          const DeviceAllReduceOptions& options, const Clock& clock)
      : collective_(collective), device_(device), rendezvous_(rendezvous), options_(options), clock_(clock) {}

  Resumable* resumable() override { return this; }
  Result<ParamArenas> allocate(const ParamLayout& layout) override;
  // All ranks must restore the same state.
  Status restore(const TrainingState& state) override;
  // Fails with invalid argument, naming a rank whose layout differs.
  Result<std::vector<Range>> join() override;
  std::int64_t first_step() const override { return first_step_; }
  void begin_step(const StepContext& step) override { step_ = step; }
  void gradient_ready(std::size_t bucket) override;
  // Times are the device's. Bytes are those of a ring (2·(n-1)/n of the gradients, each way), since the library reports
  // none.
  Result<SyncStats> finish_step() override;
  // Sends nothing: all ranks have made the same updates.
  Status leave() override { return {}; }
  Status save(TrainingState& state) const override;

 private:
  struct Bucket {
    Range range;
    std::unique_ptr<Event> ready;  // on the compute stream: the gradients are complete
    std::unique_ptr<Event> begin;  // on the communication stream
    std::unique_ptr<Event> reduced;
    std::unique_ptr<Event> update_begin;  // on the compute stream
    std::unique_ptr<Event> update_end;
  };

  TimePoint deadline() const { return clock_.now() + options_.timeout; }
  Status prove_same_layout();
  Status prepare();
  // Enqueues the bucket's mean on the communication stream, after the event `gradients`.
  void reduce(std::size_t index, const Event& gradients);
  SyncStats stats() const;

  DeviceCollective& collective_;
  Device& device_;
  Rendezvous& rendezvous_;
  const DeviceAllReduceOptions options_;
  const Clock& clock_;
  ParamLayout layout_;
  ParamArenas arenas_;
  std::vector<Range> undecayed_;
  DeviceOptimizerState state_;
  std::unique_ptr<Stream> communication_;
  std::vector<Bucket> buckets_;
  StepContext step_;
  std::int64_t first_step_ = 0;
  std::int64_t steps_done_ = 0;
  Status failure_;  // the first failure of this step
};

}  // namespace syncopate::allreduce
