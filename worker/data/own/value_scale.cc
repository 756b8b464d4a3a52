#include "worker/data/own/value_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace syncopate::worker {
namespace {

// What one channel's values come to. The moments are Welford's, which stay exact where the mean is far from zero.
struct Moments {
  double count = 0, mean = 0, squares = 0;
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();

  void add(double value) {
    count += 1;
    const double difference = value - mean;
    mean += difference / count;
    squares += difference * (value - mean);
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

}  // namespace

ValueScale ValueScale::of(const NumberArray& values, std::span<const std::int64_t> samples,
                          Normalisation normalisation) {
  const auto channels = static_cast<std::size_t>(values.shape().channels);
  ValueScale scale;
  scale.shift_.assign(channels, 0);
  scale.factor_.assign(channels, 1);
  if (normalisation == Normalisation::kNone) return scale;
  std::vector<Moments> moments(channels);
  std::vector<double> sample(static_cast<std::size_t>(values.shape().values()));
  for (const std::int64_t index : samples) {
    values.read(index, sample);
    for (std::size_t i = 0; i < sample.size(); ++i) moments[i % channels].add(sample[i]);
  }
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const Moments& of = moments[channel];
    const bool is_standard = normalisation == Normalisation::kStandard;
    const double width = is_standard ? std::sqrt(of.squares / of.count) : of.most - of.least;
    scale.shift_[channel] = is_standard ? of.mean : of.least;
    scale.factor_[channel] = width > 0 ? 1 / width : 0;
  }
  return scale;
}

}  // namespace syncopate::worker
