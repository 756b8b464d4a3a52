// The loss of models that give the probability of one of two classes.
#pragma once

#include <span>

#include "worker/backend/compute_backend.h"

namespace syncopate::worker {

// Sigmoid and cross-entropy over one logit per sample, in the host's memory: log(1 + exp(logit)) - label · logit, in a
// form that stays finite for large logits. Labels are 0 or 1. Writes d(mean loss)/d(logits) to dlogits. A sample is
// correct if (logit > 0) equals its label.
LossAndCorrect sigmoid_cross_entropy(In logits, std::span<const int> labels, Out dlogits);

}  // namespace syncopate::worker
