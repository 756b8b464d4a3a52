// The few statistics that reports quote. Pure. All take values in any order.
#pragma once

#include <span>

namespace syncopate::experiments {

// Returns the median: for an even number of values the mean of the middle two, and 0 for none.
double median(std::span<const double> values);
// Returns the smallest value that at least `fraction` of all values do not exceed (nearest rank). `fraction` is in (0,
// 1]. Returns 0 for no values.
double percentile(std::span<const double> values, double fraction);
double mean(std::span<const double> values);

struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
  bool operator==(const Spread&) const = default;
};
Spread spread_of(std::span<const double> values);

}  // namespace syncopate::experiments
