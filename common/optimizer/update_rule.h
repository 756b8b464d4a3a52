// The update rules for one weight: the same lines are used by the processor's loops and by a device's kernels. Files
// that include this are compiled without contraction to fused multiply-add, so that all round alike.
#pragma once

#include <cmath>

#include "common/optimizer/optimizer.h"
#include "common/optimizer/update_constants.h"

#ifdef __CUDACC__
#define SYNCOPATE_ANYWHERE __host__ __device__
#else
#define SYNCOPATE_ANYWHERE
#endif

namespace syncopate::update_rule {

inline bool takes_momentum(const OptimizerConfig& config, std::int64_t number) {
  return config.takes_momentum && config.frozen_after > 0 && number > config.frozen_after;
}

// A group's rate is rounded once, so that it is the same where it is given as such.
inline float rate_of(const UpdateStep& step) { return static_cast<float>(step.learning_rate); }

inline MomentumConstants momentum_constants(const OptimizerConfig& config, const UpdateStep& step) {
  return {step.gradient_scale, config.weight_decay, config.momentum, rate_of(step)};
}

inline AdamConstants adam_constants(const OptimizerConfig& config, const UpdateStep& step) {
  const bool decoupled = config.kind == OptimizerKind::kAdamW;
  const double rate = rate_of(step);
  const double number = static_cast<double>(step.number);
  // A variance that keeps all of itself and adds nothing is frozen.
  const bool is_frozen = config.frozen_after > 0 && step.number > config.frozen_after;
  const double measured = is_frozen ? static_cast<double>(config.frozen_after) : number;
  const double correction1 = 1 - std::pow(static_cast<double>(config.beta1), number);
  const double correction2 = 1 - std::pow(static_cast<double>(config.beta2), measured);
  return {.scale = step.gradient_scale,
          .coupled_decay = decoupled ? 0.0f : config.weight_decay,
          .keep = decoupled ? static_cast<float>(1 - rate * static_cast<double>(config.weight_decay)) : 1.0f,
          .beta1 = config.beta1,
          .one_minus_beta1 = static_cast<float>(1 - static_cast<double>(config.beta1)),
          .beta2 = is_frozen ? 1.0f : config.beta2,
          .one_minus_beta2 = is_frozen ? 0.0f : static_cast<float>(1 - static_cast<double>(config.beta2)),
          .step_size = static_cast<float>(rate / correction1),
          .root_correction = static_cast<float>(1 / std::sqrt(correction2)),
          .epsilon = config.epsilon};
}

inline AdagradConstants adagrad_constants(const OptimizerConfig& config, const UpdateStep& step) {
  return {step.gradient_scale, config.weight_decay, rate_of(step), config.initial_accumulator, config.epsilon};
}

inline FtrlConstants ftrl_constants(const OptimizerConfig& config, const UpdateStep& step) {
  const double alpha = rate_of(step);
  return {.scale = step.gradient_scale,
          .one_over_alpha = static_cast<float>(1 / alpha),
          .beta_over_alpha_and_l2 =
              static_cast<float>(static_cast<double>(config.beta) / alpha + static_cast<double>(config.l2)),
          .l1 = config.l1};
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

// The second stage of 1-bit Adam: see Optimizer::own_momentum.
inline float own_momentum(float w, float g, float m, float v, const AdamConstants& c) {
  const float mean = c.beta1 * m + c.one_minus_beta1 * (g + c.coupled_decay * w);
  return v == 0 ? 0.0f : mean;
}

// `sum` times the scale is the moment. The variance and both bias corrections of adam() are unchanged.
inline void adam_from_momentum(float& w, float sum, float& m, float v, const AdamConstants& c) {
  const float mean = v == 0 ? 0.0f : c.scale * sum;
  m = mean;
  w = c.keep * w - c.step_size * mean / (std::sqrt(v) * c.root_correction + c.epsilon);
}

SYNCOPATE_ANYWHERE inline void adagrad(float& w, float g, float& squares, const AdagradConstants& c) {
  const float gradient = c.scale * g + c.weight_decay * w;
  const float sum = squares + gradient * gradient;
  squares = sum;
  w -= c.learning_rate * gradient / (std::sqrt(sum + c.initial) + c.epsilon);
}

// As long as n is zero, z is the value that would have led to the current weight.
SYNCOPATE_ANYWHERE inline void ftrl(float& w, float g, float& z, float& n, const FtrlConstants& c) {
  const float gradient = c.scale * g;
  const float sum = n + gradient * gradient;
  const float root = std::sqrt(sum);
  const float sigma = (root - std::sqrt(n)) * c.one_over_alpha;
  const float pull = w > 0 ? c.l1 : w < 0 ? -c.l1 : 0.0f;
  const float before = n == 0 ? -(c.beta_over_alpha_and_l2 * w + pull) : z;
  const float next = before + gradient - sigma * w;
  const float shrunk = next > c.l1 ? next - c.l1 : next < -c.l1 ? next + c.l1 : 0.0f;
  const float weight = -shrunk / (c.beta_over_alpha_and_l2 + root * c.one_over_alpha);
  z = next;
  n = sum;
  w = sum == 0 ? w : weight;
}

}  // namespace syncopate::update_rule
