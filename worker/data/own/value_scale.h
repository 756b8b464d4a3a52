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

  // Writes the values of a sample as the model sees them. They become floats last: what is large beside its differences
  // would lose these.
  void read(const NumberArray& values, std::int64_t sample, std::span<float> to) const {
    values.read_scaled(sample, shift_, factor_, to);
  }

 private:
  std::vector<double> shift_, factor_;  // by channel: (value - shift) * factor
};

}  // namespace syncopate::worker
