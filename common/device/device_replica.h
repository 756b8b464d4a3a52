// DeviceReplica: what a strategy keeps of a replica whose weights, gradients and optimizer state lie on a device: it
// allocates them, updates them there, and saves and restores them.
//
// If the model computes with 16-bit numbers, gradients are such numbers, and updates leave rounded weights beside those
// that they are added to; float16 gradients are of a scaled loss (loss_scale.h).
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
#include "common/device/loss_scale.h"
#include "common/optimizer/update_constants.h"
#include "common/status.h"
#include "common/sync_strategy.h"
#include "common/training_state.h"

namespace syncopate {

class DeviceReplica {
 public:
  // `device` must outlive the replica. `element` is the type that the model computes with. Updates multiply gradients,
  // such as sums over replicas, by `share`.
  DeviceReplica(const OptimizerConfig& optimizer, Device& device, ElementType element, float share = 1)
      : optimizer_(optimizer), device_(device), element_(element), share_(share) {}

  // Once, before all else. The layout must have no row-sparse tables.
  Result<ParamArenas> allocate(const ParamLayout& layout);
  const ParamArenas& arenas() const { return arenas_; }

  // Enqueue copies behind all work so far, and wait for them until `deadline`. restore() fails with data loss if
  // something is missing.
  Status save(TrainingState& state, TimePoint deadline) const;
  Status restore(const TrainingState& state, TimePoint deadline);
  // Once the weights are there, and before the model reads them: enqueues their rounding. Waits until `deadline`.
  Status begin(TimePoint deadline);
  // The step that the replica begins or goes on with.
  std::int64_t first_step() const { return first_step_; }

  // From now on updates are those of `step`. The step kStepsUnderWay before it must be done.
  void begin_step(const StepContext& step);
  // Enqueues what the updates of this step need. Once a step, before the first of them; and where is_loss_scaled(),
  // once the compute stream has all gradients of the step: then a step is skipped as a whole.
  void begin_updates();
  bool is_loss_scaled() const { return element_ == ElementType::kFloat16; }
  // Enqueues the update of a range with its gradients. Weight decay leaves out what decay_parts.h says.
  void update(Range range);
  // Enqueues what follows the last update of the step.
  void end_updates();
  // Once the oldest step that has not been finished is done on the device: adds to `stats` what became of its update.
  void finish_step(SyncStats& stats);

 private:
  // What updates need of one step: for weights that decay, then for those that do not, by LossScale::choice.
  using StepConstants = std::array<std::array<update_rule::UpdateConstants, kStepsUnderWay>, 2>;
  struct Turn {
    std::span<std::byte> host_constants;  // pinned
    std::span<std::byte> constants;
    std::span<std::byte> loss_scale;  // pinned: as the step has left it
  };

  Status allocate_loss_scale();
  // On the device; null if the loss is not scaled.
  LossScale* loss_scale() const;

  const OptimizerConfig optimizer_;
  Device& device_;
  const ElementType element_;
  const float share_;
  ParamArenas arenas_;
  DeviceOptimizerState state_;
  std::vector<Range> undecayed_;
  std::array<Turn, kStepsUnderWay> turns_;
  std::span<std::byte> loss_scale_;  // on the device
  LossScale last_scale_;             // as the last finished step has left it
  std::int64_t first_step_ = 0;
  std::int64_t step_ = -1;     // the last that was begun
  std::int64_t finished_ = 0;  // the oldest step that is not finished
};

}  // namespace syncopate
