#include "worker/health_check.h"

#include "common/device/loss_scale.h"

namespace syncopate::worker {

std::optional<NotFinite> HealthCheck::found(double loss, const ParamArenas& arenas, const BatchView& batch) {
  is_found_ = is_found_ || (options_ && !std::isfinite(loss));
  return is_found_ ? std::optional(describe(loss, arenas, batch)) : std::nullopt;
}

std::optional<NotFinite> HealthCheck::found_in_loss(const StepContext& step, double loss,
                                                    const SyncStats& stats) const {
  const bool is_rate = !std::isfinite(step.learning_rate);
  if (!options_) return std::nullopt;
  if (!is_rate && std::isfinite(loss)) {
    if (stats.skipped == 0 || stats.loss_scale > static_cast<std::int64_t>(LossScale::kLeast)) return std::nullopt;
    return NotFinite{
        .step = step.step, .quantity = NotFinite::Quantity::kGradient, .tensor = "some tensor", .loss = loss};
  }
  return NotFinite{.step = step.step,
                   .quantity = is_rate ? NotFinite::Quantity::kRate : NotFinite::Quantity::kLoss,
                   .value = is_rate ? step.learning_rate : loss,
                   .loss = loss};
}

NotFinite HealthCheck::describe(double loss, const ParamArenas& arenas, const BatchView& batch) const {
  using Quantity = NotFinite::Quantity;
  const auto what = [&](Quantity quantity, double value, std::string tensor = {}) {
    return NotFinite{
        .step = step_.step, .quantity = quantity, .tensor = std::move(tensor), .value = value, .loss = loss};
  };
  if (!std::isfinite(step_.learning_rate)) return what(Quantity::kRate, step_.learning_rate);
  if (const auto found = tensor_not_finite(layout_, arenas.weights, step_.rows)) {
    return what(Quantity::kWeights, found->value, found->name);
  }
  if (const auto place = first_not_finite(batch.values)) return what(Quantity::kBatch, batch.values[*place]);
  if (const auto found = tensor_not_finite(layout_, arenas.gradients, step_.rows)) {
    return what(Quantity::kGradient, found->value, found->name);
  }
  return what(Quantity::kLoss, loss);
}

}  // namespace syncopate::worker
