// What rounds of runs may claim: whether one configuration differs from another beyond the noise of the machine. Pure.
//
// Every round runs each configuration once, in drawn order, so that a slow spell falls on all alike and, between equal
// configurations, a difference within a round is as likely to have the one sign as the other. Of these differences, one
// a round, a trimmed mean is taken, with Student's t interval over winsorized deviations: Yuen (1974), The two-sample
// trimmed t for unequal population variances, for paired values (of one sample: Tukey and McLaughlin 1963). A tenth is
// trimmed at each end, so that it is a t test below ten rounds, and a single run that was disturbed does no harm from
// there on. Several configurations are judged together by Holm's procedure (1979, A simple sequentially rejective
// multiple test procedure).
//
// Chosen by simulation, of which tests/experiments/lab/report/paired_comparison_test.cc keeps a part: a percentile
// bootstrap of the median called 15 to 35 % of tables of four to eight equal rows different at five rounds, a
// studentized one found half of what a t test finds, and a signed-rank test can claim nothing below eight rounds.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace syncopate::experiments {

// Fewer rounds than these are not judged.
inline constexpr std::size_t kFewestRounds = 5;

// The part of tables of equal configurations in which any is called different is to be 0.05 at most. Winsorized
// deviations of few rounds are a little too small, by what a nominal level of 0.04 leaves room for. A single interval
// so covers 96 % by its formula, and is quoted as one of 95 %.
inline constexpr double kFamilyLevel = 0.04;

struct Interval {
  double low = 0;
  double high = 0;
  bool operator==(const Interval&) const = default;
};

// Values of one configuration.
struct Estimate {
  std::size_t count = 0;
  double mean = 0;  // trimmed
  double least = 0;
  double most = 0;
  std::optional<Interval> interval;  // of the mean, at 95 %; from kFewestRounds values on
};

enum class Verdict { kHigher, kLower, kNoDifferenceShown, kNotJudged };

// A configuration against the baseline, over the rounds that have both.
struct Difference {
  std::size_t pairs = 0;
  double estimate = 0;  // the trimmed mean of the differences
  // From kFewestRounds pairs on: at the level at which Holm's procedure judges this configuration, so that the verdict
  // is kHigher or kLower exactly where the interval leaves out that there is no difference.
  std::optional<Interval> interval;
  double p = 1;  // before Holm's procedure: how often equal configurations come to lie so far apart
  Verdict verdict = Verdict::kNotJudged;
};

// By round; empty where there is no value.
using Series = std::vector<std::optional<double>>;

// Each of `rows` against the first, as one family. The first's own Difference is of no pairs, as is that of a row that
// shares no round with it. Values are finite; rows may differ in length.
std::vector<Difference> differences(std::span<const Series> rows);

// The same of ratios to the first: differences of logarithms, given as ratios. Values of zero and below count as
// missing.
std::vector<Difference> ratios(std::span<const Series> rows);

// Of no values, a count of 0.
Estimate estimate(const Series& values);

// A configuration's own noise: the median of |log(value / value before)| over rounds that follow each other, as a
// fraction. Empty unless there are two values to compare. Values of zero and below count as missing.
std::optional<double> noise_between_rounds(const Series& values);

}  // namespace syncopate::experiments
