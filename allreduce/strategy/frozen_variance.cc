#include "allreduce/strategy/frozen_variance.h"

namespace syncopate::allreduce {

void raise_small_variances(std::span<float> variance) {
  if (variance.empty()) return;
  double sum = 0;
  for (const float value : variance) sum += static_cast<double>(value);
  const double mean = sum / static_cast<double>(variance.size());
  const float least = kLeastVariance * static_cast<float>(mean);
  for (float& value : variance) value = value < least ? least : value;
}

}  // namespace syncopate::allreduce
