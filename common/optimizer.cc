#include "common/optimizer.h"

#include <cassert>
#include <cmath>

#include "common/flush_denormals.h"

// This file is compiled without contraction to fused multiply-add (see cmake/Options.cmake): a vector body and its
// scalar tail then round alike, so that the result of an element does not depend on how a range was cut.

namespace syncopate {
namespace {

struct MomentumConstants {
  float scale, weight_decay, momentum, learning_rate;
};

struct AdamConstants {
  float scale;
  float coupled_decay;  // joins the gradient
  float keep;           // 1 - rate · decoupled decay
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float step_size;        // rate / (1 - beta1^t)
  float root_correction;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
};

void apply_sgd(float* __restrict w, const float* __restrict g, std::size_t n, const MomentumConstants& c) {
  const auto [scale, weight_decay, unused, rate] = c;
  for (std::size_t i = 0; i < n; ++i) w[i] -= rate * (scale * g[i] + weight_decay * w[i]);
}

template <bool kNesterov>
void apply_momentum(float* __restrict w, const float* __restrict g, float* __restrict velocity, std::size_t n,
                    const MomentumConstants& c) {
  const auto [scale, weight_decay, momentum, rate] = c;
  for (std::size_t i = 0; i < n; ++i) {
    const float gradient = scale * g[i] + weight_decay * w[i];
    velocity[i] = momentum * velocity[i] + gradient;
    w[i] -= rate * (kNesterov ? gradient + momentum * velocity[i] : velocity[i]);
  }
}

void apply_adam(float* __restrict w, const float* __restrict g, float* __restrict m, float* __restrict v, std::size_t n,
                const AdamConstants& constants) {
  const AdamConstants c = constants;  // a copy, so that the loop need not fear that a store changes it
  for (std::size_t i = 0; i < n; ++i) {
    const float gradient = c.scale * g[i] + c.coupled_decay * w[i];
    const float mean = c.beta1 * m[i] + c.one_minus_beta1 * gradient;
    const float square = c.beta2 * v[i] + c.one_minus_beta2 * (gradient * gradient);
    m[i] = mean;
    v[i] = square;
    w[i] = c.keep * w[i] - c.step_size * mean / (std::sqrt(square) * c.root_correction + c.epsilon);
  }
}

AdamConstants adam_constants(const OptimizerConfig& config, const UpdateStep& step) {
  const bool decoupled = config.kind == OptimizerKind::kAdamW;
  const double rate = step.learning_rate;
  const double number = static_cast<double>(step.number);
  const double correction1 = 1 - std::pow(static_cast<double>(config.beta1), number);
  const double correction2 = 1 - std::pow(static_cast<double>(config.beta2), number);
  return {.scale = step.gradient_scale,
          .coupled_decay = decoupled ? 0.0f : config.weight_decay,
          .keep = decoupled ? static_cast<float>(1 - rate * static_cast<double>(config.weight_decay)) : 1.0f,
          .beta1 = config.beta1,
          .one_minus_beta1 = static_cast<float>(1 - static_cast<double>(config.beta1)),
          .beta2 = config.beta2,
          .one_minus_beta2 = static_cast<float>(1 - static_cast<double>(config.beta2)),
          .step_size = static_cast<float>(rate / correction1),
          .root_correction = static_cast<float>(1 / std::sqrt(correction2)),
          .epsilon = config.epsilon};
}

bool is_adam(OptimizerKind kind) { return kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamW; }

}  // namespace

OptimizerState::OptimizerState(OptimizerKind kind, std::size_t elements)
    : first_(kind == OptimizerKind::kSgd ? 0 : elements), second_(is_adam(kind) ? elements : 0) {}

void Optimizer::apply(std::span<float> weights, std::span<const float> gradient, OptimizerState& state,
                      std::size_t offset, const UpdateStep& step) const {
  assert(gradient.size() == weights.size());
  assert(config_.kind == OptimizerKind::kSgd || offset + weights.size() <= state.first_.size());
  assert(!is_adam(config_.kind) || state.second_.size() == state.first_.size());
  const FlushDenormals flush;
  float* const w = weights.data();
  const float* const g = gradient.data();
  const std::size_t n = weights.size();
  const MomentumConstants constants{step.gradient_scale, config_.weight_decay, config_.momentum, step.learning_rate};
  switch (config_.kind) {
    case OptimizerKind::kSgd:
      return apply_sgd(w, g, n, constants);
    case OptimizerKind::kMomentum:
      if (config_.nesterov) return apply_momentum<true>(w, g, state.first_.data() + offset, n, constants);
      return apply_momentum<false>(w, g, state.first_.data() + offset, n, constants);
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return apply_adam(w, g, state.first_.data() + offset, state.second_.data() + offset, n,
                        adam_constants(config_, step));
  }
}

}  // namespace syncopate
