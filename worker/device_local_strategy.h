// DeviceLocalStrategy: LocalStrategy for a model that computes on a device; the optimizer runs there as well.
#pragma once

#include <memory>

#include "common/device/device.h"
#include "common/sync_strategy.h"

namespace syncopate::worker {

class DeviceLocalStrategy final : public SyncStrategy, public Resumable {
 public:
  // `device` and `clock` must outlive the strategy. `timeout` bounds the wait for the end of a step.
  DeviceLocalStrategy(const OptimizerConfig& optimizer, Device& device, const Clock& clock, Duration timeout)
      : optimizer_(optimizer), device_(device), clock_(clock), timeout_(timeout) {}

  Resumable* resumable() override { return this; }
  Result<ParamArenas> allocate(const ParamLayout& layout) override;
  Status restore(const TrainingState& state) override;
  Result<std::vector<Range>> join() override;
  std::int64_t first_step() const override { return first_step_; }
  void begin_step(const StepContext& step) override { step_ = step; }
  void gradient_ready(std::size_t /*bucket*/) override {}
  // Times are the device's.
  Result<SyncStats> finish_step() override;
  Status leave() override { return {}; }
  Status save(TrainingState& state) const override;

 private:
  const OptimizerConfig optimizer_;
  Device& device_;
  const Clock& clock_;
  const Duration timeout_;
  ParamArenas arenas_;
  std::vector<Range> undecayed_;
  DeviceOptimizerState state_;
  std::unique_ptr<Event> begin_;  // of the update
  std::unique_ptr<Event> end_;
  StepContext step_;
  std::int64_t first_step_ = 0;
  std::int64_t steps_done_ = 0;
};

}  // namespace syncopate::worker
