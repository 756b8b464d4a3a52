// The update rules for one weight: the same lines are used by the processor's loops and by a device's kernels. Files
// that include this are compiled without contraction to fused multiply-add, so that all round alike.
//
// A rule is a struct: which constants it reads, how many memories it has of a weight, and apply(w, g, memories...,
// constants), which changes the weight and them. with_rule says which rule a configuration means.
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

inline float scale_of(const OptimizerConfig& config, const UpdateStep& step) {
  return config.maximize ? -step.gradient_scale : step.gradient_scale;
}

inline float one_minus(float share) { return static_cast<float>(1 - static_cast<double>(share)); }

// The first velocity is the gradient, as in PyTorch.
inline MomentumConstants momentum_constants(const OptimizerConfig& config, const UpdateStep& step) {
  return {scale_of(config, step), config.weight_decay, config.momentum, rate_of(step),
          step.number > 1 ? one_minus(config.dampening) : 1.0f};
}

// The rectified rate of radam (Liu and others 2020, algorithm 2) in place of adam's. While the variance of the second
// moment is intractable, the denominator is 1.
inline void rectify(AdamConstants& constants, double beta2, double number) {
  const double power = std::pow(beta2, number), most = 2 / (1 - beta2) - 1;
  const double length = most - 2 * number * power / (1 - power);
  if (length > 5) {
    const double rectification =
        std::sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)) * std::sqrt(1 - power);
    constants.step_size = static_cast<float>(static_cast<double>(constants.step_size) * rectification);
    constants.root_correction = 1;
  } else {
    constants.root_correction = 0;
    constants.epsilon = 1;
  }
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
  AdamConstants constants{
      .scale = scale_of(config, step),
      .coupled_decay = decoupled ? 0.0f : config.weight_decay,
      .keep = decoupled ? static_cast<float>(1 - rate * static_cast<double>(config.weight_decay)) : 1.0f,
      .beta1 = config.beta1,
      .one_minus_beta1 = one_minus(config.beta1),
      .beta2 = is_frozen ? 1.0f : config.beta2,
      .one_minus_beta2 = is_frozen ? 0.0f : one_minus(config.beta2),
      .step_size = static_cast<float>(rate / correction1),
      .root_correction = static_cast<float>(1 / std::sqrt(correction2)),
      .epsilon = config.epsilon};
  if (config.kind == OptimizerKind::kRadam) rectify(constants, static_cast<double>(config.beta2), number);
  return constants;
}

inline AdagradConstants adagrad_constants(const OptimizerConfig& config, const UpdateStep& step) {
  const double slowed = 1 + static_cast<double>(step.number - 1) * static_cast<double>(config.lr_decay);
  return {scale_of(config, step), config.weight_decay, static_cast<float>(rate_of(step) / slowed),
          config.initial_accumulator, config.epsilon};
}

inline FtrlConstants ftrl_constants(const OptimizerConfig& config, const UpdateStep& step) {
  const double alpha = rate_of(step);
  return {.scale = step.gradient_scale,
          .one_over_alpha = static_cast<float>(1 / alpha),
          .beta_over_alpha_and_l2 =
              static_cast<float>(static_cast<double>(config.beta) / alpha + static_cast<double>(config.l2)),
          .l1 = config.l1};
}

inline SquaresConstants squares_constants(const OptimizerConfig& config, const UpdateStep& step) {
  return {.scale = scale_of(config, step),
          .weight_decay = config.weight_decay,
          .learning_rate = rate_of(step),
          .rho = config.rho,
          .one_minus_rho = one_minus(config.rho),
          .epsilon = config.epsilon,
          .momentum = config.momentum};
}

inline LayerConstants layer_constants(const OptimizerConfig& config, const UpdateStep& step) {
  const AdamConstants adam = adam_constants(config, step);
  const double correction1 = 1 - std::pow(static_cast<double>(config.beta1), static_cast<double>(step.number));
  return {.scale = scale_of(config, step),
          .weight_decay = config.weight_decay,
          .learning_rate = rate_of(step),
          .momentum = config.momentum,
          .beta1 = adam.beta1,
          .one_minus_beta1 = adam.one_minus_beta1,
          .beta2 = adam.beta2,
          .one_minus_beta2 = adam.one_minus_beta2,
          .mean_correction = static_cast<float>(1 / correction1),
          .root_correction = adam.root_correction,
          .epsilon = adam.epsilon,
          .trust_coefficient = config.trust_coefficient,
          .trust = 1};
}

struct Sgd {
  static constexpr auto kConstants = &UpdateConstants::momentum;
  static constexpr std::size_t kMemories = 0;

  SYNCOPATE_ANYWHERE static void apply(float& w, float g, const MomentumConstants& c) {
    w -= c.learning_rate * (c.scale * g + c.weight_decay * w);
  }
};

// Nobody makes the update here: the mean gradient is left in place of the weight.
struct Mean {
  static constexpr auto kConstants = &UpdateConstants::momentum;
  static constexpr std::size_t kMemories = 0;

  SYNCOPATE_ANYWHERE static void apply(float& w, float g, const MomentumConstants& c) { w = c.scale * g; }
};

template <bool kNesterov>
struct Momentum {
  static constexpr auto kConstants = &UpdateConstants::momentum;
  static constexpr std::size_t kMemories = 1;

  SYNCOPATE_ANYWHERE static void apply(float& w, float g, float& velocity, const MomentumConstants& c) {
    const float gradient = c.scale * g + c.weight_decay * w;
    const float next = c.momentum * velocity + c.share * gradient;
    velocity = next;
    w -= c.learning_rate * (kNesterov ? gradient + c.momentum * next : next);
  }
};

struct Adam {
  static constexpr auto kConstants = &UpdateConstants::adam;
  static constexpr std::size_t kMemories = 2;

  SYNCOPATE_ANYWHERE static void apply(float& w, float g, float& m, float& v, const AdamConstants& c) {
    const float gradient = c.scale * g + c.coupled_decay * w;
    const float mean = c.beta1 * m + c.one_minus_beta1 * gradient;
    const float square = c.beta2 * v + c.one_minus_beta2 * (gradient * gradient);
    m = mean;
    v = square;
    w = c.keep * w - c.step_size * mean / (std::sqrt(square) * c.root_correction + c.epsilon);
  }
};

struct AmsGrad {
  static constexpr auto kConstants = &UpdateConstants::adam;
  static constexpr std::size_t kMemories = 3;

  SYNCOPATE_ANYWHERE static void apply(float& w, float g, float& m, float& v, float& largest, const AdamConstants& c) {
    const float gradient = c.scale * g + c.coupled_decay * w;
    const float mean = c.beta1 * m + c.one_minus_beta1 * gradient;
    const float square = c.beta2 * v + c.one_minus_beta2 * (gradient * gradient);
    const float most = largest > square ? largest : square;
    m = mean;
    v = square;
    largest = most;
    w = c.keep * w - c.step_size * mean / (std::sqrt(most) * c.root_correction + c.epsilon);
  }
};

// The norm is PyTorch's: epsilon is added to each gradient.
struct Adamax {
  static constexpr auto kConstants = &UpdateConstants::adam;
  static constexpr std::size_t kMemories = 2;

  SYNCOPATE_ANYWHERE static void apply(float& w, float g, float& m, float& norm, const AdamConstants& c) {
    const float gradient = c.scale * g + c.coupled_decay * w;
    const float mean = c.beta1 * m + c.one_minus_beta1 * gradient;
    const float kept = c.beta2 * norm, size = std::fabs(gradient) + c.epsilon;
    const float largest = kept > size ? kept : size;
    m = mean;
    norm = largest;
    w -= c.step_size * mean / largest;
  }
};

// The second stage of 1-bit Adam: see Optimizer::own_momentum.
inline float own_momentum(float w, float g, float m, float v, const AdamConstants& c) {
  const float mean = c.beta1 * m + c.one_minus_beta1 * (g + c.coupled_decay * w);
  return v == 0 ? 0.0f : mean;
}

// `sum` times the scale is the moment. The variance and both bias corrections of Adam are unchanged.
struct AdamFromMomentum {
  static constexpr auto kConstants = &UpdateConstants::adam;
  static constexpr std::size_t kMemories = 2;

  static void apply(float& w, float sum, float& m, const float& v, const AdamConstants& c) {
    const float mean = v == 0 ? 0.0f : c.scale * sum;
    m = mean;
    w = c.keep * w - c.step_size * mean / (std::sqrt(v) * c.root_correction + c.epsilon);
  }
};

struct Adagrad {
  static constexpr auto kConstants = &UpdateConstants::adagrad;
  static constexpr std::size_t kMemories = 1;

  SYNCOPATE_ANYWHERE static void apply(float& w, float g, float& squares, const AdagradConstants& c) {
    const float gradient = c.scale * g + c.weight_decay * w;
    const float sum = squares + gradient * gradient;
    squares = sum;
    w -= c.learning_rate * gradient / (std::sqrt(sum + c.initial) + c.epsilon);
  }
};

// As long as n is zero, z is the value that would have led to the current weight.
struct Ftrl {
  static constexpr auto kConstants = &UpdateConstants::ftrl;
  static constexpr std::size_t kMemories = 2;

  SYNCOPATE_ANYWHERE static void apply(float& w, float g, float& z, float& n, const FtrlConstants& c) {
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
};

// Its memories: the mean of squares; if centered, that of gradients; if there is momentum, the velocity.
template <bool kCentered, bool kVelocity>
struct Rmsprop {
  static constexpr auto kConstants = &UpdateConstants::squares;
  static constexpr std::size_t kMemories = 1 + kCentered + kVelocity;

  SYNCOPATE_ANYWHERE static void apply(float& w, float g, float& squares, const SquaresConstants& c) {
    w -= c.learning_rate * divided(w, g, squares, nullptr, c);
  }
  SYNCOPATE_ANYWHERE static void apply(float& w, float g, float& squares, float& other, const SquaresConstants& c) {
    if constexpr (kCentered) {
      w -= c.learning_rate * divided(w, g, squares, &other, c);
    } else {
      w -= c.learning_rate * gathered(divided(w, g, squares, nullptr, c), other, c);
    }
  }
  SYNCOPATE_ANYWHERE static void apply(float& w, float g, float& squares, float& mean, float& velocity,
                                       const SquaresConstants& c) {
    w -= c.learning_rate * gathered(divided(w, g, squares, &mean, c), velocity, c);
  }

 private:
  // Returns the gradient by its root mean square, or if there is a mean by its deviation, which rounding may make the
  // root of a little less than zero.
  SYNCOPATE_ANYWHERE static float divided(float w, float g, float& squares, float* mean, const SquaresConstants& c) {
    const float gradient = c.scale * g + c.weight_decay * w;
    const float square = c.rho * squares + c.one_minus_rho * (gradient * gradient);
    squares = square;
    if constexpr (!kCentered) return gradient / (std::sqrt(square) + c.epsilon);
    const float middle = *mean + c.one_minus_rho * (gradient - *mean);
    *mean = middle;
    const float variance = square - middle * middle;
    return gradient / (std::sqrt(variance < 0 ? 0.0f : variance) + c.epsilon);
  }
  SYNCOPATE_ANYWHERE static float gathered(float direction, float& velocity, const SquaresConstants& c) {
    const float next = c.momentum * velocity + direction;
    velocity = next;
    return next;
  }
};

// Its memories: means of the squares of gradients, and of changes.
struct Adadelta {
  static constexpr auto kConstants = &UpdateConstants::squares;
  static constexpr std::size_t kMemories = 2;

  SYNCOPATE_ANYWHERE static void apply(float& w, float g, float& squares, float& changes, const SquaresConstants& c) {
    const float gradient = c.scale * g + c.weight_decay * w;
    const float square = c.rho * squares + c.one_minus_rho * (gradient * gradient);
    const float change = std::sqrt(changes + c.epsilon) / std::sqrt(square + c.epsilon) * gradient;
    squares = square;
    changes = c.rho * changes + c.one_minus_rho * (change * change);
    w -= c.learning_rate * change;
  }
};

// A rule that goes by layer makes two passes over each: direction() works out what the ratio is of, and may change
// memories; apply() goes there. trust_of() is the ratio of a tensor whose weights and directions have these norms.
template <typename Rule>
concept Layerwise = requires {
  &Rule::trust_of;
};

// The velocity has the rates of its steps in it, as in the paper.
struct Lars {
  static constexpr auto kConstants = &UpdateConstants::layer;
  static constexpr std::size_t kMemories = 1;

  static float direction(float, float g, float&, const LayerConstants& c) { return c.scale * g; }
  static float trust_of(double weights, double gradients, const LayerConstants& c) {
    const double ratio = static_cast<double>(c.trust_coefficient) * weights /
                         (gradients + static_cast<double>(c.weight_decay) * weights);
    return weights > 0 && gradients > 0 ? static_cast<float>(ratio) : 1.0f;
  }
  static void apply(float& w, float g, float& velocity, const LayerConstants& c) {
    const float next = c.momentum * velocity + c.learning_rate * c.trust * (c.scale * g + c.weight_decay * w);
    velocity = next;
    w -= next;
  }
};

struct Lamb {
  static constexpr auto kConstants = &UpdateConstants::layer;
  static constexpr std::size_t kMemories = 2;

  static float direction(float w, float g, float& m, float& v, const LayerConstants& c) {
    const float gradient = c.scale * g;
    m = c.beta1 * m + c.one_minus_beta1 * gradient;
    v = c.beta2 * v + c.one_minus_beta2 * (gradient * gradient);
    return towards(w, m, v, c);
  }
  static float trust_of(double weights, double directions, const LayerConstants&) {
    return weights > 0 && directions > 0 ? static_cast<float>(weights / directions) : 1.0f;
  }
  static void apply(float& w, float, const float& m, const float& v, const LayerConstants& c) {
    w -= c.learning_rate * c.trust * towards(w, m, v, c);
  }

 private:
  static float towards(float w, float m, float v, const LayerConstants& c) {
    return c.mean_correction * m / (std::sqrt(v) * c.root_correction + c.epsilon) + c.weight_decay * w;
  }
};

// Returns call(Rule()), with the rule that takes gradients.
template <typename Call>
auto with_rule(const OptimizerConfig& config, Call&& call) {
  switch (config.kind) {
    case OptimizerKind::kSgd:
      break;
    case OptimizerKind::kMomentum:
      return config.nesterov ? call(Momentum<true>()) : call(Momentum<false>());
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
    case OptimizerKind::kRadam:
      return config.amsgrad ? call(AmsGrad()) : call(Adam());
    case OptimizerKind::kAdagrad:
      return call(Adagrad());
    case OptimizerKind::kFtrl:
      return call(Ftrl());
    case OptimizerKind::kRmsprop:
      if (config.momentum == 0) return config.centered ? call(Rmsprop<true, false>()) : call(Rmsprop<false, false>());
      return config.centered ? call(Rmsprop<true, true>()) : call(Rmsprop<false, true>());
    case OptimizerKind::kAdadelta:
      return call(Adadelta());
    case OptimizerKind::kAdamax:
      return call(Adamax());
    case OptimizerKind::kLars:
      return call(Lars());
    case OptimizerKind::kLamb:
      return call(Lamb());
    case OptimizerKind::kMean:
      return call(Mean());
  }
  return call(Sgd());
}

// Calls call(Rule()) for each rule that takes gradients and goes by weight.
template <typename Call>
void for_each_rule(Call&& call) {
  (call(Sgd()), call(Mean()), call(Momentum<false>()), call(Momentum<true>()), call(Adam()), call(AmsGrad()),
   call(Adamax()));
  (call(Adagrad()), call(Ftrl()), call(Adadelta()));
  (call(Rmsprop<false, false>()), call(Rmsprop<false, true>()));
  (call(Rmsprop<true, false>()), call(Rmsprop<true, true>()));
}

// Applies the rule to the weight `w`, whose memories are the elements `i`.
template <typename Rule, typename Constants>
SYNCOPATE_ANYWHERE inline void apply_at(float& w, float g, float* first, float* second, float* third, std::size_t i,
                                        const Constants& c) {
  if constexpr (Rule::kMemories == 0) Rule::apply(w, g, c);
  if constexpr (Rule::kMemories == 1) Rule::apply(w, g, first[i], c);
  if constexpr (Rule::kMemories == 2) Rule::apply(w, g, first[i], second[i], c);
  if constexpr (Rule::kMemories == 3) Rule::apply(w, g, first[i], second[i], third[i], c);
}

}  // namespace syncopate::update_rule
