// What rounds of runs may claim: whether one configuration differs from another beyond the noise of the machine. Pure.
//
// Every round runs each configuration once, in a random order, so that a slow period affects all alike and, between
// equal configurations, a difference within a round is as likely to be positive as negative. The estimate is a trimmed
// mean of these differences, one per round, with Student's t interval over winsorized deviations: Yuen (1974), The
// two-sample trimmed t for unequal population variances, for paired values (for one sample: Tukey and McLaughlin 1963).
// A tenth is trimmed at each end, so that it is a t test below ten rounds, and from there on a single disturbed run
// does no harm. Several configurations are judged together by Holm's procedure (1979, A simple sequentially rejective
// multiple test procedure).
//
// Rounds of a machine may be alike, and tell less than as many independent ones: intervals and verdicts allow for that
// (alike_rounds.h).
//
// The method was chosen by simulation, of which tests/experiments/lab/report/paired_comparison_test.cc keeps a part: a
// percentile bootstrap of the median called 15 to 35 % of tables of four to eight equal rows different at five rounds,
// a studentized one found half of what a t test finds, and a signed-rank test can claim nothing below eight rounds.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "experiments/lab/report/alike_rounds.h"

namespace syncopate::experiments {

// With fewer rounds than this nothing is judged.
inline constexpr std::size_t kFewestRounds = 5;

// At most 0.05 of the tables of equal configurations should contain one that is called different. Of independent rounds
// the winsorized deviations of a few are a little too small, and a nominal level of 0.04 leaves room for that: a single
// interval covers 96 % by its formula, and is quoted as one of 95 %. The distribution for rounds that may be alike is
// wide enough.
inline constexpr double kLevelOfIndependent = 0.04;
inline constexpr double kLevelOfAlike = 0.045;

// At most this often may the same rounds be judged as they become more (enough_rounds.h).
inline constexpr std::size_t kMostAnalyses = 5;

struct Judging {
  Rounds rounds = Rounds::kMayBeAlike;
  std::size_t analyses = 1;  // so often, at most, all that there is by then is judged; 1 to kMostAnalyses
};

struct Interval {
  double low = 0;
  double high = 0;
  bool operator==(const Interval&) const = default;
};

// An estimate from the values of one configuration.
struct Estimate {
  std::size_t count = 0;
  double mean = 0;  // trimmed
  double least = 0;
  double most = 0;
  std::optional<Interval> interval;  // for the mean, at 95 %; given from kFewestRounds values on
};

enum class Verdict { kHigher, kLower, kNoDifferenceShown, kNotJudged };

// A configuration against the baseline, over the rounds that both have.
struct Difference {
  std::size_t pairs = 0;
  double estimate = 0;  // the trimmed mean of the differences
  // Given from kFewestRounds pairs on, at the level at which Holm's procedure judges this configuration, so that the
  // verdict is kHigher or kLower exactly where the interval excludes that there is no difference.
  std::optional<Interval> interval;
  double p = 1;                // before Holm's procedure: the probability that equal configurations differ by so much
  double autocorrelation = 0;  // of successive differences: the one that makes them most likely, 0 to 0.95
  Verdict verdict = Verdict::kNotJudged;
};

// A value for each round; empty where there is none.
using Series = std::vector<std::optional<double>>;

// Compares each of `rows` with the first, as one family. The Difference of the first has no pairs, as has that of a row
// that shares no round with it. Values must be finite; rows may differ in length.
std::vector<Difference> differences(std::span<const Series> rows, const Judging& judging = {});

// Does the same for ratios to the first: differences of logarithms, returned as ratios. Values of zero and below count
// as missing.
std::vector<Difference> ratios(std::span<const Series> rows, const Judging& judging = {});

// Returns the estimate; its count is 0 if there are no values.
Estimate estimate(const Series& values, Rounds rounds = Rounds::kMayBeAlike);

// Returns a configuration's own noise: the median of |log(value / value before)| over successive rounds, as a fraction.
// Empty unless there are two values to compare. Values of zero and below count as missing.
std::optional<double> noise_between_rounds(const Series& values);

}  // namespace syncopate::experiments
