#include "tests/support/weights_distance.h"

#include <cmath>
#include <limits>

namespace syncopate::testing_support {

double relative_distance(const std::vector<float>& first, const std::vector<float>& second,
                         const std::vector<float>& from) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (first.size() != second.size() || (!from.empty() && from.size() != first.size())) return kInfinite;
  double apart = 0, length = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    apart += std::pow(static_cast<double>(first[i]) - second[i], 2);
    length += std::pow(static_cast<double>(first[i]) - (from.empty() ? 0 : from[i]), 2);
  }
  const double distance = std::sqrt(apart / length);
  return std::isfinite(distance) ? distance : kInfinite;
}

}  // namespace syncopate::testing_support
