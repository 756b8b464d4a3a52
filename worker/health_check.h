// HealthCheck: looks at what a worker's steps have made, for values that are not finite numbers. Each tensor's gradient
// is looked at as soon as it is final, while it is still in a cache, and before it is summed, encoded or sent: codecs
// and sums can hide whose it was. Where else something is not finite is only looked for once that has found something.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "common/finite.h"
#include "common/on_nan.h"
#include "common/param_layout.h"
#include "common/sync_strategy.h"
#include "worker/model.h"
#include "worker/not_finite.h"

namespace syncopate::worker {

struct HealthOptions {
  OnNan on_nan = OnNan::kStop;
  bool reads_gradients = true;  // false: they lie in a device's memory, and the loss is all that is looked at
};

class HealthCheck {
 public:
  // `layout` must outlive this object. Without options nothing is looked at: a model that computes nothing has nothing
  // to be found.
  HealthCheck(const std::optional<HealthOptions>& options, const ParamLayout& layout)
      : options_(options), layout_(layout) {}

  void begin_step(const StepContext& step) {
    step_ = step;
    is_found_ = options_ && !std::isfinite(step.learning_rate);
  }

  // The gradient of tensor `tensor` is final.
  void tensor_ready(std::size_t tensor, std::span<const float> gradients) {
    if (is_found_ || !reads_gradients()) return;
    const TensorSpec& spec = layout_.tensors()[tensor];
    const Range range = spec.table ? spec.room_of(step_.rows[tensor].size()) : spec.range;
    is_found_ = !all_finite(slice(gradients, range));
  }

  // Returns whether what is final of this step's gradient must not be handed over: what is left out must be left out as
  // a whole, and of a run that ends nobody else needs it.
  bool holds_back() const { return skips() || (is_found_ && options_->on_nan == OnNan::kStop); }
  bool skips() const { return options_ && options_->on_nan == OnNan::kSkip; }
  bool reads_gradients() const { return options_ && options_->reads_gradients; }

  // Where gradients are read. Call it once the step's loss is known. Returns what was the first in this step that is
  // not finite, if anything: before the update, `arenas` are those of the step.
  std::optional<NotFinite> found(double loss, const ParamArenas& arenas, const BatchView& batch);
  // Where they are not: whether the loss of `step`, whichever was begun since, or its learning rate is not finite; or
  // its gradient, though the loss was not scaled up.
  std::optional<NotFinite> found_in_loss(const StepContext& step, double loss, const SyncStats& stats) const;

 private:
  NotFinite describe(double loss, const ParamArenas& arenas, const BatchView& batch) const;

  const std::optional<HealthOptions> options_;
  const ParamLayout& layout_;
  StepContext step_;
  bool is_found_ = false;
};

}  // namespace syncopate::worker
