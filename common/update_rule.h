// The update rules, for one weight: the very same lines for the processor's loops and for a device's kernels. Files
// that include this are compiled without contraction to fused multiply-add, so that all round alike.
#pragma once

#include <cmath>

#include "common/optimizer.h"

#ifdef __CUDACC__
#define SYNCOPATE_ANYWHERE __host__ __device__
#else
#define SYNCOPATE_ANYWHERE
#endif

namespace syncopate::update_rule {

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

inline bool is_adam(OptimizerKind kind) { return kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamW; }

inline MomentumConstants momentum_constants(const OptimizerConfig& config, const UpdateStep& step) {
  return {step.gradient_scale, config.weight_decay, config.momentum, step.learning_rate};
}

inline AdamConstants adam_constants(const OptimizerConfig& config, const UpdateStep& step) {
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

SYNCOPATE_ANYWHERE inline void sgd(float& w, float g, const MomentumConstants& c) {
  w -= c.learning_rate * (c.scale * g + c.weight_decay * w);
}

template <bool kNesterov>
SYNCOPATE_ANYWHERE inline void momentum(float& w, float g, float& velocity, const MomentumConstants& c) {
  const float gradient = c.scale * g + c.weight_decay * w;
  const float next = c.momentum * velocity + gradient;
  velocity = next;
  w -= c.learning_rate * (kNesterov ? gradient + c.momentum * next : next);
}

SYNCOPATE_ANYWHERE inline void adam(float& w, float g, float& m, float& v, const AdamConstants& c) {
  const float gradient = c.scale * g + c.coupled_decay * w;
  const float mean = c.beta1 * m + c.one_minus_beta1 * gradient;
  const float square = c.beta2 * v + c.one_minus_beta2 * (gradient * gradient);
  m = mean;
  v = square;
  w = c.keep * w - c.step_size * mean / (std::sqrt(square) * c.root_correction + c.epsilon);
}

}  // namespace syncopate::update_rule
