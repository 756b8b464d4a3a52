// SoftmaxCrossEntropy: the head of a classifier. It turns logits and labels into the mean loss, and at once into the
// loss's gradient, which costs no more than the loss alone.
#pragma once

#include "worker/layers/layer.h"

namespace syncopate::worker {

struct LossAndCorrect {
  double loss = 0;  // mean over the batch
  int correct = 0;
};

class SoftmaxCrossEntropy {
 public:
  SoftmaxCrossEntropy(ComputeBackend& backend, int batch, int classes)
      : backend_(backend), batch_(batch), classes_(classes) {}

  // `dlogits` receives d(mean loss)/d(logits).
  LossAndCorrect evaluate(In logits, std::span<const int> labels, Out dlogits) const {
    LossAndCorrect result;
    result.loss = backend_.softmax_cross_entropy(batch_, classes_, logits, labels, dlogits, &result.correct);
    return result;
  }

 private:
  ComputeBackend& backend_;
  int batch_;
  int classes_;
};

}  // namespace syncopate::worker
