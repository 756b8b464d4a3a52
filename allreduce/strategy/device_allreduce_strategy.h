// DeviceAllReduceStrategy: synchronous data parallelism on devices.
//
// As soon as backward has finished a bucket, its mean over all workers is enqueued on a communication stream, after an
// event, while backward goes on (or, without overlap, after the end of backward); the update of a bucket follows its
// mean. The host only enqueues the work: it waits for the end of a step when the next one is enqueued.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "allreduce/device_collective.h"
#include "common/device/device_replica.h"
#include "common/rendezvous.h"
#include "common/sync_strategy.h"

namespace syncopate::allreduce {

struct DeviceAllReduceOptions {
  OptimizerConfig optimizer;
  std::size_t bucket_bytes = 1024 * 1024;       // as they travel
  ElementType element = ElementType::kFloat32;  // that the model computes with: gradients travel in it
  bool overlap = true;                          // as AllReduceOptions::overlap
  Duration timeout = std::chrono::seconds(30);  // for join, and for each step
};

class DeviceAllReduceStrategy final : public SyncStrategy, public Resumable {
 public:
  // All arguments must outlive the strategy. At `rendezvous` the ranks check that they train the same layout.
  DeviceAllReduceStrategy(DeviceCollective& collective, Device& device, Rendezvous& rendezvous,
                          const DeviceAllReduceOptions& options, const Clock& clock)
      : collective_(collective),
        device_(device),
        rendezvous_(rendezvous),
        options_(options),
        clock_(clock),
        replica_(options.optimizer, device, options.element, sums() ? 1 / static_cast<float>(collective.size()) : 1) {}

  Resumable* resumable() override { return this; }
  Result<ParamArenas> allocate(const ParamLayout& layout) override;
  // All ranks must restore the same state.
  Status restore(const TrainingState& state) override { return replica_.restore(state, deadline()); }
  // Fails with invalid argument, naming a rank whose layout differs.
  Result<std::vector<Range>> join() override;
  std::int64_t first_step() const override { return replica_.first_step(); }
  bool runs_ahead() const override { return true; }
  void begin_step(const StepContext& step) override;
  void gradient_ready(std::size_t bucket) override;
  void gradients_complete() override;
  void step_given() override;
  // Times are the device's. Bytes are those of a ring (2·(n-1)/n of the gradients, each way), since the library reports
  // none.
  Result<SyncStats> finish_step() override;
  // Sends nothing: all ranks have made the same updates.
  Status leave() override { return {}; }
  Status save(TrainingState& state) const override;

 private:
  // One step's points of a bucket.
  struct Events {
    std::unique_ptr<Event> ready;  // on the compute stream: the gradients are complete
    std::unique_ptr<Event> begin;  // on the communication stream
    std::unique_ptr<Event> reduced;
    std::unique_ptr<Event> update_begin;  // on the compute stream
    std::unique_ptr<Event> update_end;
  };
  struct Bucket {
    Range range;
    std::array<Events, kStepsUnderWay> events;  // by turn
  };

  TimePoint deadline() const { return clock_.now() + options_.timeout; }
  // Whether gradients are summed on their way, and divided by the update: a mean of 16-bit numbers would not be exact.
  bool sums() const { return options_.element != ElementType::kFloat32; }
  Reduction reduction() const { return sums() ? Reduction::kSum : Reduction::kMean; }
  Status prove_same_layout();
  Status prepare();
  // The bucket's points of the step that was begun last.
  const Events& events_of(const Bucket& bucket) const { return bucket.events[turn_of(begun_)]; }
  // Enqueues the bucket's mean on the communication stream, after the event `gradients`.
  void reduce(std::size_t index, const Event& gradients);
  // The same for all buckets at once, after the end of backward.
  void reduce_together();
  SyncStats stats_of(std::size_t turn) const;

  DeviceCollective& collective_;
  Device& device_;
  Rendezvous& rendezvous_;
  const DeviceAllReduceOptions options_;
  const Clock& clock_;
  ParamLayout layout_;
  DeviceReplica replica_;
  std::unique_ptr<Stream> communication_;
  std::vector<Bucket> buckets_;
  std::array<std::unique_ptr<Event>, kStepsUnderWay> done_;  // steps, by turn
  std::int64_t begun_ = 0;                                   // the last step that was begun
  std::int64_t unfinished_ = 0;                              // the oldest step that is not finished
  Status failure_;                                           // the first of what was enqueued
};

}  // namespace syncopate::allreduce
