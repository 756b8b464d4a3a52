// ValueScale: how the values of samples become what a model sees, by channel of an image or by feature.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/data/own/own_samples.h"

namespace syncopate::worker {

class ValueScale {
 public:
  // Takes the moments or the range of these samples. What is the same in all of them stays at 0.
  static ValueScale of(const NumberArray& values, std::span<const std::int64_t> samples, Normalisation normalisation);

  void apply(std::span<float> values) const;

 private:
  std::vector<double> shift_, factor_;  // by channel: (value - shift) * factor
};

}  // namespace syncopate::worker
