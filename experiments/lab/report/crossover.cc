#include "experiments/lab/report/crossover.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/report/varied_rows.h"

namespace syncopate::experiments {
namespace {

// One mode's samples/s over another's, at one value of the option.
struct RatioAt {
  double value = 0;
  Difference ratio;
};

std::vector<RatioAt> ratios_of(const ComparisonReport& report, const RowsOverOption& one, const RowsOverOption& other) {
  std::vector<RatioAt> all;
  for (const auto& [value, row] : one.row_of) {
    const auto same = other.row_of.find(value);
    if (same == other.row_of.end()) continue;
    const Series of_one = throughput_series(report.rows[row]);
    const Series of_other = throughput_series(report.rows[same->second]);
    const Estimate own = estimate(of_one), of = estimate(of_other);
    if (own.count == 0 || of.count == 0 || !(own.mean > 0 && of.mean > 0)) continue;
    Difference ratio = ratios(std::array{of_other, of_one}, {.analyses = report.analyses})[1];
    if (!report.in_rounds || ratio.pairs == 0) ratio = {.estimate = own.mean / of.mean};
    all.push_back({value, ratio});
  }
  return all;
}

// Returns 1 where the first mode is ahead, -1 where the other is, and 0 where neither is shown to be.
int ahead(const Difference& ratio) {
  if (ratio.interval) return ratio.verdict == Verdict::kHigher ? 1 : ratio.verdict == Verdict::kLower ? -1 : 0;
  return ratio.estimate > kAhead ? 1 : ratio.estimate < 1 / kAhead ? -1 : 0;
}

double crossing_in(const std::vector<RatioAt>& ratios, std::size_t low, std::size_t high) {
  std::vector<RatioAtValue> plain;
  for (std::size_t i = low; i <= high; ++i) plain.push_back({ratios[i].value, ratios[i].ratio.estimate});
  return crossing(plain);
}

void add_crossings(const std::string& option, const RowsOverOption& one, const RowsOverOption& other,
                   const std::vector<RatioAt>& ratios, std::vector<Crossover>& crossovers) {
  std::optional<std::size_t> last;  // where one of them was ahead
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    const int now = ahead(ratios[i].ratio);
    if (now == 0) continue;
    if (last && ahead(ratios[*last].ratio) != now) {
      crossovers.push_back({.option = option,
                            .others = one.others,
                            .below = now < 0 ? one.mode : other.mode,
                            .above = now < 0 ? other.mode : one.mode,
                            .at = crossing_in(ratios, *last, i),
                            .between = {ratios[*last].value, ratios[i].value},
                            .is_judged = ratios[i].ratio.interval.has_value()});
    }
    last = i;
  }
}

}  // namespace

double crossing(std::span<const RatioAtValue> ratios) {
  for (std::size_t i = 0; i + 1 < ratios.size(); ++i) {
    const double before = std::log(ratios[i].ratio), after = std::log(ratios[i + 1].ratio);
    if (before * after > 0) continue;
    const double way = before == after ? 0.5 : before / (before - after);
    return std::exp((1 - way) * std::log(ratios[i].value) + way * std::log(ratios[i + 1].value));
  }
  return ratios.back().value;
}

std::vector<Crossover> crossovers_of(const ComparisonReport& report) {
  std::vector<Crossover> crossovers;
  for (const std::string& option : report.varied) {
    const std::vector<RowsOverOption> all = rows_over(report, option);
    for (auto one = all.begin(); one != all.end(); ++one) {
      for (auto other = one + 1; other != all.end(); ++other) {
        // A mode without one of the other options, as allreduce has no servers, meets those with any of its values.
        const bool is_comparable = one->others == other->others || one->others.empty() || other->others.empty();
        if (one->mode == other->mode || !is_comparable) continue;
        RowsOverOption named = *one;
        if (named.others.empty()) named.others = other->others;
        add_crossings(option, named, *other, ratios_of(report, *one, *other), crossovers);
      }
    }
  }
  return crossovers;
}

}  // namespace syncopate::experiments
