#include "experiments/lab/report/statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

namespace syncopate::experiments {
namespace {

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> copy(values.begin(), values.end());
  std::ranges::sort(copy);
  return copy;
}

}  // namespace

double median(std::span<const double> values) {
  if (values.empty()) return 0;
  const std::vector<double> ascending = sorted(values);
  const std::size_t middle = ascending.size() / 2;
  return ascending.size() % 2 == 1 ? ascending[middle] : (ascending[middle - 1] + ascending[middle]) / 2;
}

double percentile(std::span<const double> values, double fraction) {
  if (values.empty()) return 0;
  const double rank = std::ceil(fraction * static_cast<double>(values.size()));
  return sorted(values)[std::clamp<std::size_t>(static_cast<std::size_t>(rank), 1, values.size()) - 1];
}

double mean(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Spread spread_of(std::span<const double> values) {
  if (values.empty()) return {};
  const auto [least, most] = std::ranges::minmax(values);
  return {median(values), least, most};
}

double two_sided_p(double t, int freedom) {
  assert(freedom >= 1);
  const double angle = std::atan(std::abs(t) / std::sqrt(freedom));
  const double sine = std::sin(angle), cosine = std::cos(angle);
  const bool odd = freedom % 2 == 1;
  // The series is 1 + 1/2 cos^2 + (1*3)/(2*4) cos^4 + ... for an even freedom, and cos + 2/3 cos^3 + ... for an odd
  // one.
  double term = odd ? cosine : 1, sum = freedom == 1 ? 0 : term;
  for (int i = odd ? 3 : 2; i <= freedom - 2; i += 2) {
    term *= (i - 1.0) / i * cosine * cosine;
    sum += term;
  }
  const double within = odd ? 2 / std::numbers::pi * (angle + sine * sum) : sine * sum;
  return std::clamp(1 - within, 0.0, 1.0);
}

double two_sided_quantile(double p, int freedom) {
  assert(p > 0 && p < 1);
  double low = 0, high = 1;
  while (two_sided_p(high, freedom) > p) high *= 2;
  while (high - low > 1e-12 * high) {
    const double middle = (low + high) / 2;
    (two_sided_p(middle, freedom) > p ? low : high) = middle;
  }
  return high;
}

}  // namespace syncopate::experiments
