#include "experiments/lab/report/paired_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "experiments/lab/report/statistics.h"

namespace syncopate::experiments {
namespace {

// The fraction trimmed at each end.
constexpr double kTrimmed = 0.1;

double level_of(Rounds rounds) { return rounds == Rounds::kIndependent ? kLevelOfIndependent : kLevelOfAlike; }

// Returns the part of the level of one analysis at which each of so many is made (Jennison and Turnbull 2000, Group
// Sequential Methods with Applications to Clinical Trials, table 2.1: Pocock's constants for 0.05, as levels).
double part_of_level(std::size_t analyses) {
  constexpr std::array<double, kMostAnalyses> kLevels = {0.05, 0.0294, 0.0221, 0.0182, 0.0158};
  return kLevels.at(analyses - 1) / kLevels.front();
}

// A trimmed mean, and how far it may lie from the true one.
struct TrimmedMean {
  double mean = 0;
  ErrorOfMean error;

  Interval interval(double level) const {
    const double reach = error.reach(level);
    return {mean - reach, mean + reach};
  }
};

// Requires two values or more, in the order in which they were measured.
TrimmedMean trimmed_mean(const std::vector<double>& in_order, Rounds rounds) {
  std::vector<double> values = in_order;
  std::ranges::sort(values);
  const std::size_t all = values.size(), cut = static_cast<std::size_t>(kTrimmed * static_cast<double>(all) + 1e-9);
  const auto count = static_cast<double>(all), kept = static_cast<double>(all - 2 * cut);
  const std::span<const double> inner = std::span(values).subspan(cut, all - 2 * cut);
  const double trimmed = mean(inner), least = inner.front(), most = inner.back();
  for (std::size_t i = 0; i < all; ++i) values[i] = std::clamp(in_order[i], least, most);  // winsorized
  const double inflation = count * (count - 1) / (kept * (kept - 1));
  return {trimmed, ErrorOfMean(values, rounds, inflation, static_cast<int>(kept) - 1)};
}

Difference difference(const Series& baseline, const Series& row, Rounds rounds, std::optional<TrimmedMean>& mean_of) {
  std::vector<double> pairs;
  for (std::size_t round = 0; round < std::min(baseline.size(), row.size()); ++round) {
    if (baseline[round] && row[round]) pairs.push_back(*row[round] - *baseline[round]);
  }
  Difference result{.pairs = pairs.size()};
  if (pairs.size() == 1) result.estimate = pairs.front();
  if (pairs.size() < 2) return result;
  TrimmedMean trimmed = trimmed_mean(pairs, rounds);
  result.estimate = trimmed.mean;
  if (pairs.size() < kFewestRounds) return result;
  mean_of = std::move(trimmed);
  return result;
}

// Lets each row learn from the others how alike rounds are: they count together as much as its own values do, so that
// a row that drifts alone is not taken for one of them. (Weighted, as composite likelihoods are; Varin, Reid and Firth
// 2011, An overview of composite likelihood methods.)
void share(std::vector<std::optional<TrimmedMean>>& means) {
  const auto judged = std::ranges::count_if(means, [](const auto& mean) { return mean.has_value(); });
  if (judged < 2) return;
  const double part = 1 / static_cast<double>(judged - 1);
  for (std::optional<TrimmedMean>& mean : means) {
    for (const std::optional<TrimmedMean>& other : means) {
      if (mean && other && &mean != &other) mean->error.learn_from(other->error, part);
    }
  }
}

// Holm's procedure: the smallest p is judged at level / m, the next at level / (m - 1), and so on until one is not
// significant; that one and all after it are judged at its level.
void judge(std::vector<Difference>& rows, const std::vector<std::optional<TrimmedMean>>& means, double level) {
  std::vector<std::size_t> judged;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!means[row]) continue;
    judged.push_back(row);
    rows[row].p = means[row]->error.p(means[row]->mean);
    rows[row].autocorrelation = means[row]->error.autocorrelation();
  }
  std::ranges::stable_sort(judged, {}, [&](std::size_t row) { return rows[row].p; });
  bool differ = true;
  std::size_t left = judged.size();
  for (const std::size_t row : judged) {
    const double its_level = level / static_cast<double>(left);
    differ = differ && rows[row].p <= its_level;
    if (differ) --left;
    rows[row].interval = means[row]->interval(its_level);
    rows[row].verdict = !differ                  ? Verdict::kNoDifferenceShown
                        : rows[row].estimate > 0 ? Verdict::kHigher
                                                 : Verdict::kLower;
  }
}

Series logarithms(const Series& values) {
  Series logarithms(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] && *values[i] > 0) logarithms[i] = std::log(*values[i]);
  }
  return logarithms;
}

}  // namespace

std::vector<Difference> differences(std::span<const Series> rows, const Judging& judging) {
  std::vector<Difference> results(rows.size());
  std::vector<std::optional<TrimmedMean>> means(rows.size());
  for (std::size_t row = 1; row < rows.size(); ++row)
    results[row] = difference(rows[0], rows[row], judging.rounds, means[row]);
  share(means);
  judge(results, means, level_of(judging.rounds) * part_of_level(judging.analyses));
  return results;
}

std::vector<Difference> ratios(std::span<const Series> rows, const Judging& judging) {
  std::vector<Series> logarithms_of;
  for (const Series& row : rows) logarithms_of.push_back(logarithms(row));
  std::vector<Difference> results = differences(logarithms_of, judging);
  for (Difference& result : results) {
    result.estimate = std::exp(result.estimate);
    if (result.interval) result.interval = {std::exp(result.interval->low), std::exp(result.interval->high)};
  }
  return results;
}

Estimate estimate(const Series& values, Rounds rounds) {
  std::vector<double> present;
  for (const std::optional<double>& value : values) {
    if (value) present.push_back(*value);
  }
  const Spread spread = spread_of(present);
  Estimate result{present.size(), mean(present), spread.least, spread.most, std::nullopt};
  if (present.size() < kFewestRounds) return result;
  const TrimmedMean trimmed = trimmed_mean(present, rounds);
  result.mean = trimmed.mean;
  result.interval = trimmed.interval(level_of(rounds));
  return result;
}

std::optional<double> noise_between_rounds(const Series& values) {
  std::vector<double> distances;
  std::optional<double> before;
  for (const std::optional<double>& value : logarithms(values)) {
    if (!value) continue;
    if (before) distances.push_back(std::abs(*value - *before));
    before = value;
  }
  if (distances.empty()) return std::nullopt;
  return std::expm1(median(distances));
}

}  // namespace syncopate::experiments
