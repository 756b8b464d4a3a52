// The loss of models that say how likely one of two classes is.
#pragma once

#include <span>

#include "worker/backend/compute_backend.h"

namespace syncopate::worker {

// Sigmoid and cross-entropy over a logit a sample, in the host's memory: log(1 + exp(logit)) - label · logit, in a form
// that stays finite for large logits. Labels are 0 or 1. Writes d(mean loss)/d(logits) to dlogits. A sample is told
// right where (logit > 0) is its label.
LossAndCorrect sigmoid_cross_entropy(In logits, std::span<const int> labels, Out dlogits);

}  // namespace syncopate::worker
