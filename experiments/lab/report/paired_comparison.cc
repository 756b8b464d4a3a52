#include "experiments/lab/report/paired_comparison.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "experiments/lab/report/statistics.h"

namespace syncopate::experiments {
namespace {

// The fraction trimmed at each end.
constexpr double kTrimmed = 0.1;

// A few values show a correlation badly: it is taken for no larger than this, and is corrected by no smaller divisor.
constexpr double kMostAutocorrelation = 0.85;
constexpr double kLeastDivisor = 3;

// Returns how much larger the variance of the mean is than that of independent values with the same sum of squares,
// where the correlation falls by `autocorrelation` with each step (Bayley and Hammersley 1946, The "effective" number
// of independent observations in an autocorrelated time series).
double variance_inflation(double autocorrelation, std::size_t values) {
  const auto count = static_cast<double>(values);
  double inflation = 1, power = 1;
  for (std::size_t lag = 1; lag < values; ++lag) {
    power *= autocorrelation;
    inflation += 2 * (1 - static_cast<double>(lag) / count) * power;
  }
  return inflation * (count - 1) / (count - inflation);
}

// A trimmed mean, its standard error as of independent values, and how many degrees of freedom that has.
struct TrimmedMean {
  double mean = 0;
  double error = 0;
  int freedom = 1;
  std::size_t values = 0;
  double autocorrelation = 0;  // of successive values; at most kMostAutocorrelation

  // Widens the error to that of values that are so alike; what looks like an alternation narrows nothing.
  void widen(double alike) {
    autocorrelation = std::clamp(alike, 0.0, kMostAutocorrelation);
    error *= std::sqrt(variance_inflation(autocorrelation, values));
  }

  double p() const {
    if (error <= 0) return mean == 0 ? 1 : 0;
    return two_sided_p(mean / error, freedom);
  }
  Interval interval(double level) const {
    const double reach = two_sided_quantile(level, freedom) * error;
    return {mean - reach, mean + reach};
  }
};

// Returns the correlation of each value with the one before. That of a short series is too
// small by (1 + 4 r) / n in the mean: Marriott and Pope (1954), Bias in the estimation of autocorrelations.
double autocorrelation_of(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  const double center = mean(values);
  double both = 0, squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    squares += (values[i] - center) * (values[i] - center);
    if (i > 0) both += (values[i] - center) * (values[i - 1] - center);
  }
  if (squares <= 0) return 0;
  return std::min((count * both / squares + 1) / std::max(kLeastDivisor, count - 4), kMostAutocorrelation);
}

// Requires two values or more, in the order in which they were measured.
TrimmedMean trimmed_mean(const std::vector<double>& in_order) {
  std::vector<double> values = in_order;
  std::ranges::sort(values);
  const std::size_t count = values.size(), cut = static_cast<std::size_t>(kTrimmed * static_cast<double>(count) + 1e-9);
  const auto kept = static_cast<double>(count - 2 * cut);
  const std::span<const double> inner = std::span(values).subspan(cut, count - 2 * cut);
  const double trimmed = mean(inner), least = inner.front(), most = inner.back();
  for (std::size_t i = 0; i < count; ++i) values[i] = std::clamp(in_order[i], least, most);  // winsorized
  const double center = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - center) * (value - center);
  return {trimmed, std::sqrt(squares / (kept * (kept - 1))), static_cast<int>(kept) - 1, count,
          autocorrelation_of(values)};
}

Difference difference(const Series& baseline, const Series& row, std::optional<TrimmedMean>& mean_of) {
  std::vector<double> pairs;
  for (std::size_t round = 0; round < std::min(baseline.size(), row.size()); ++round) {
    if (baseline[round] && row[round]) pairs.push_back(*row[round] - *baseline[round]);
  }
  Difference result{.pairs = pairs.size()};
  if (pairs.size() == 1) result.estimate = pairs.front();
  if (pairs.size() < 2) return result;
  const TrimmedMean trimmed = trimmed_mean(pairs);
  result.estimate = trimmed.mean;
  if (pairs.size() < kFewestRounds) return result;
  mean_of = trimmed;
  return result;
}

// Holm's procedure: the smallest p is judged at level / m, the next at level / (m - 1), and so on until one is not
// significant; that one and all after it are judged at its level.
void judge(std::vector<Difference>& rows, std::vector<std::optional<TrimmedMean>>& means) {
  std::vector<std::size_t> judged;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (means[row]) judged.push_back(row);
  }
  if (judged.empty()) return;
  // What all rows share is known better than what each shows alone.
  double shared = 0;
  for (const std::size_t row : judged) shared += means[row]->autocorrelation / static_cast<double>(judged.size());
  for (const std::size_t row : judged) {
    means[row]->widen(std::max(shared, means[row]->autocorrelation));
    rows[row].p = means[row]->p();
    rows[row].autocorrelation = means[row]->autocorrelation;
  }
  std::ranges::stable_sort(judged, {}, [&](std::size_t row) { return rows[row].p; });
  bool differ = true;
  std::size_t left = judged.size();
  for (const std::size_t row : judged) {
    const double level = kFamilyLevel / static_cast<double>(left);
    differ = differ && rows[row].p <= level;
    if (differ) --left;
    rows[row].interval = means[row]->interval(level);
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

std::vector<Difference> differences(std::span<const Series> rows) {
  std::vector<Difference> results(rows.size());
  std::vector<std::optional<TrimmedMean>> means(rows.size());
  for (std::size_t row = 1; row < rows.size(); ++row) results[row] = difference(rows[0], rows[row], means[row]);
  judge(results, means);
  return results;
}

std::vector<Difference> ratios(std::span<const Series> rows) {
  std::vector<Series> logarithms_of;
  for (const Series& row : rows) logarithms_of.push_back(logarithms(row));
  std::vector<Difference> results = differences(logarithms_of);
  for (Difference& result : results) {
    result.estimate = std::exp(result.estimate);
    if (result.interval) result.interval = {std::exp(result.interval->low), std::exp(result.interval->high)};
  }
  return results;
}

Estimate estimate(const Series& values) {
  std::vector<double> present;
  for (const std::optional<double>& value : values) {
    if (value) present.push_back(*value);
  }
  const Spread spread = spread_of(present);
  Estimate result{present.size(), mean(present), spread.least, spread.most, std::nullopt};
  if (present.size() < kFewestRounds) return result;
  TrimmedMean trimmed = trimmed_mean(present);
  trimmed.widen(trimmed.autocorrelation);
  result.mean = trimmed.mean;
  result.interval = trimmed.interval(kFamilyLevel);
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
