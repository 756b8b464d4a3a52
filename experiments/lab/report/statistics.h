// The few statistics that reports quote, and Student's t distribution with an integer number of degrees of freedom.
// Pure. Functions of several values take them in any order.
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

// Returns P(|T| >= |t|) under Student's t distribution, the probability of a value that large by chance. Abramowitz and
// Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4. `freedom` is 1 or more.
double two_sided_p(double t, int freedom);

// Returns the t that |T| exceeds with probability `p`, in (0, 1): two_sided_p(t, freedom) == p.
double two_sided_quantile(double p, int freedom);

}  // namespace syncopate::experiments
