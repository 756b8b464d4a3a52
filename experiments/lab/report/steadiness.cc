#include "experiments/lab/report/steadiness.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/report/paired_comparison.h"
#include "experiments/lab/report/statistics.h"

namespace syncopate::experiments {
namespace {

constexpr double kByChance = 0.01;

// Returns the logarithms of the throughputs of each row, by round, over the rounds that all rows have.
std::vector<std::vector<double>> shared_rounds(const ComparisonReport& report) {
  std::vector<std::vector<double>> rows(report.rows.size());
  std::size_t rounds = report.rows.empty() ? 0 : report.rows.front().rounds.size();
  for (const ComparedRow& row : report.rows) rounds = std::min(rounds, row.rounds.size());
  for (std::size_t round = 0; round < rounds; ++round) {
    const bool all = std::ranges::all_of(report.rows, [&](const ComparedRow& row) {
      return row.rounds[round] && row.rounds[round]->samples_per_second.value_or(0) > 0;
    });
    if (!all) continue;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      rows[row].push_back(std::log(*report.rows[row].rounds[round]->samples_per_second));
    }
  }
  return rows;
}

}  // namespace

std::optional<Drift> trend_of(std::span<const double> logarithms) {
  const std::size_t rounds = logarithms.size();
  if (rounds < kFewestRounds) return std::nullopt;
  const double middle = static_cast<double>(rounds - 1) / 2, center = mean(logarithms);
  double across = 0, both = 0, rest = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    const double x = static_cast<double>(round) - middle;
    across += x * x;
    both += x * logarithms[round];
  }
  const double slope = both / across;
  for (std::size_t round = 0; round < rounds; ++round) {
    const double off = logarithms[round] - center - slope * (static_cast<double>(round) - middle);
    rest += off * off;
  }
  const int freedom = static_cast<int>(rounds) - 2;
  const double error = std::sqrt(rest / freedom / across);
  if (!(error > 0)) return std::nullopt;  // no noise: simulated
  const double p = two_sided_p(slope / error, freedom);
  if (p >= kByChance) return std::nullopt;
  return Drift{.a_round = std::exp(slope), .rounds = rounds, .p = p};
}

std::optional<Drift> drift_of(const ComparisonReport& report) {
  if (!report.in_rounds) return std::nullopt;
  const std::vector<std::vector<double>> rows = shared_rounds(report);
  std::vector<double> level(rows.empty() ? 0 : rows.front().size());  // of the machine, by round
  for (const std::vector<double>& row : rows) {
    const double center = mean(row);
    for (std::size_t round = 0; round < level.size(); ++round) {
      level[round] += (row[round] - center) / static_cast<double>(rows.size());
    }
  }
  return trend_of(level);
}

}  // namespace syncopate::experiments
