// Steadiness: whether the machine has become slower or faster over the rounds of a comparison. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// A trend over rounds.
struct Drift {
  double a_round = 0;  // the factor by which throughput changes from one round to the next: 0.98 is 2 % slower
  std::size_t rounds = 0;
  double p = 1;  // the probability of such a trend by chance
};

// Returns the trend of the logarithms of throughputs, by a straight line and its t test (Draper and Smith, Applied
// Regression Analysis, 1.4), if its probability by chance is below 1 in 100. Judged from kFewestRounds rounds on; never
// of times without noise, which do not drift.
std::optional<Drift> trend_of(std::span<const double> logarithms);

// Returns the trend that rows share, which ran in rounds: that of the mean, over rows, of the logarithm of a row's
// throughput over its own mean, over the rounds that all rows have.
std::optional<Drift> drift_of(const ComparisonReport& report);

}  // namespace syncopate::experiments
