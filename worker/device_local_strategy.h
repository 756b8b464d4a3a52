// DeviceLocalStrategy: LocalStrategy for a model that computes on a device; the optimizer runs there as well.
#pragma once

#include <array>
#include <memory>

#include "common/device/device_replica.h"
#include "common/sync_strategy.h"

namespace syncopate::worker {

class DeviceLocalStrategy final : public SyncStrategy, public Resumable {
 public:
  // `device` and `clock` must outlive the strategy. `element` is the type that the model computes with. `timeout`
  // bounds the wait for the end of a step.
  DeviceLocalStrategy(const OptimizerConfig& optimizer, Device& device, ElementType element, const Clock& clock,
                      Duration timeout)
      : device_(device), clock_(clock), timeout_(timeout), replica_(optimizer, device, element) {}

  Resumable* resumable() override { return this; }
  Result<ParamArenas> allocate(const ParamLayout& layout) override;
  Status restore(const TrainingState& state) override { return replica_.restore(state, deadline()); }
  Result<std::vector<Range>> join() override;
  std::int64_t first_step() const override { return replica_.first_step(); }
  bool runs_ahead() const override { return true; }
  void begin_step(const StepContext& step) override;
  void gradient_ready(std::size_t /*bucket*/) override {}
  void gradients_complete() override;
  void step_given() override;
  // Times are the device's.
  Result<SyncStats> finish_step() override;
  Status leave() override { return {}; }
  Status save(TrainingState& state) const override { return replica_.save(state, deadline()); }

 private:
  struct Events {
    std::unique_ptr<Event> begin;  // of the update
    std::unique_ptr<Event> end;
    std::unique_ptr<Event> done;  // the step
  };

  TimePoint deadline() const { return clock_.now() + timeout_; }

  Device& device_;
  const Clock& clock_;
  const Duration timeout_;
  DeviceReplica replica_;
  std::array<Events, kStepsUnderWay> events_;  // by turn
  std::int64_t begun_ = 0;                     // the last step that was begun
  std::int64_t unfinished_ = 0;                // the oldest step that is not finished
};

}  // namespace syncopate::worker
