#include "experiments/lab/report/statistics.h"

#include <algorithm>
#include <cmath>
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

}  // namespace syncopate::experiments
