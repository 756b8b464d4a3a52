#include "worker/recommender/sigmoid_loss.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace syncopate::worker {

LossAndCorrect sigmoid_cross_entropy(In logits, std::span<const int> labels, Out dlogits) {
  assert(logits.size() == labels.size() && dlogits.size() == labels.size());
  const auto batch = static_cast<double>(labels.size());
  LossAndCorrect result;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double logit = logits[i], label = labels[i];
    const double small = std::exp(-std::abs(logit));  // of the less likely class against the other
    const double probability = (logit > 0 ? 1 : small) / (1 + small);
    result.loss += std::max(logit, 0.0) - label * logit + std::log1p(small);
    result.correct += (logit > 0) == (labels[i] == 1) ? 1 : 0;
    dlogits[i] = static_cast<float>((probability - label) / batch);
  }
  result.loss /= batch;
  return result;
}

}  // namespace syncopate::worker
