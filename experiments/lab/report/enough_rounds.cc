#include "experiments/lab/report/enough_rounds.h"

#include <algorithm>
#include <vector>

#include "experiments/lab/report/comparison_figures.h"

namespace syncopate::experiments {

bool is_within(const Difference& ratio, double margin) {
  return ratio.interval && ratio.interval->low >= 1 - margin && ratio.interval->high <= 1 / (1 - margin);
}

bool is_settled(const ComparisonReport& report, double margin) {
  std::vector<Series> rows;
  std::size_t fastest = 0;
  for (const ComparedRow& row : report.rows) {
    const std::size_t rounds = report.order.size();
    if (rounds == 0 || rounds > row.rounds.size() || !row.rounds[rounds - 1]) continue;
    rows.push_back(throughput_series(row));
    if (estimate(rows.back()).mean > estimate(rows[fastest]).mean) fastest = rows.size() - 1;
  }
  const auto settled = [&] {
    const std::vector<Difference> judged = ratios(rows, {.analyses = report.analyses});
    return std::ranges::all_of(judged.begin() + 1, judged.end(), [&](const Difference& one) {
      return one.verdict == Verdict::kHigher || one.verdict == Verdict::kLower || is_within(one, margin);
    });
  };
  if (rows.size() < 2) return true;
  if (!settled()) return false;
  std::swap(rows[0], rows[fastest]);
  return settled();
}

}  // namespace syncopate::experiments
