// DeviceReplica: what a strategy keeps of a replica whose weights, gradients and optimizer state lie on a device: it
// allocates them, updates them there, and saves and restores them.
//
// Updates are only enqueued, on the device's compute stream. What they need of their step lies in memory, one record
// for each of the kStepsUnderWay steps that may be under way at once: so that the same enqueued work, given again by a
// Graph, is the next step's update.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "common/clock.h"
#include "common/device/device.h"
#include "common/status.h"
#include "common/sync_strategy.h"
#include "common/training_state.h"

namespace syncopate {

class DeviceReplica {
 public:
  // `device` must outlive the replica.
  DeviceReplica(const OptimizerConfig& optimizer, Device& device) : optimizer_(optimizer), device_(device) {}

  // Once, before all else. The layout must have no row-sparse tables.
  Result<ParamArenas> allocate(const ParamLayout& layout);
  const ParamArenas& arenas() const { return arenas_; }

  // Enqueue copies behind all work so far, and wait for them until `deadline`. restore() fails with data loss if
  // something is missing.
  Status save(TrainingState& state, TimePoint deadline) const;
  Status restore(const TrainingState& state, TimePoint deadline);
  // The step that the replica begins or goes on with.
  std::int64_t first_step() const { return first_step_; }

  // From now on updates are those of `step`. The step kStepsUnderWay before it must be done.
  void begin_step(const StepContext& step);
  // Enqueues what the updates of this step need. Once a step, before the first of them.
  void begin_updates();
  // Enqueues the update of a range with its gradients. Weight decay leaves out what decay_parts.h says.
  void update(Range range);

 private:
  // What updates need of one step, for weights that decay and for those that do not.
  struct Constants {
    std::span<std::byte> host;  // pinned
    std::span<std::byte> device;
  };

  const OptimizerConfig optimizer_;
  Device& device_;
  ParamArenas arenas_;
  DeviceOptimizerState state_;
  std::vector<Range> undecayed_;
  std::array<Constants, kStepsUnderWay> constants_;
  std::int64_t first_step_ = 0;
  std::int64_t step_ = -1;  // the last that was begun
};

}  // namespace syncopate
