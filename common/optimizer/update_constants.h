// What an update rule's loop over elements needs of its step: worked out once a step, on the processor, in double
// precision where it matters.
#pragma once

#include "common/optimizer/optimizer.h"

namespace syncopate::update_rule {

struct MomentumConstants {
  float scale, weight_decay, momentum, learning_rate;
  float share;  // of the gradient, that enters the velocity
};

// Also of adamax, and of radam, which is adam with a corrected rate.
struct AdamConstants {
  float scale;
  float coupled_decay;  // added to the gradient
  float keep;           // 1 - rate · decoupled decay
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float step_size;        // rate / (1 - beta1^t)
  float root_correction;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
};

struct AdagradConstants {
  float scale, weight_decay, learning_rate, initial, epsilon;
};

struct FtrlConstants {
  float scale;
  float one_over_alpha;
  float beta_over_alpha_and_l2;
  float l1;
};

// Those of rmsprop and adadelta.
struct SquaresConstants {
  float scale, weight_decay, learning_rate, rho, one_minus_rho, epsilon, momentum;
};

// Those of lars and lamb.
struct LayerConstants {
  float scale, weight_decay, learning_rate, momentum;
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float mean_correction;  // 1 / (1 - beta1^t)
  float root_correction;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
  float trust_coefficient;
  float trust;  // the layer's ratio
};

// Those of every rule, as a device's memory holds them; each rule reads its own.
struct UpdateConstants {
  MomentumConstants momentum;
  AdamConstants adam;
  AdagradConstants adagrad;
  FtrlConstants ftrl;
  SquaresConstants squares;
  LayerConstants layer;
};

UpdateConstants constants_of(const OptimizerConfig& config, const UpdateStep& step);

}  // namespace syncopate::update_rule
