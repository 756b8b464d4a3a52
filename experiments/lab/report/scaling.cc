#include "experiments/lab/report/scaling.h"

#include <algorithm>
#include <optional>

#include "experiments/lab/report/varied_rows.h"

namespace syncopate::experiments {
namespace {

bool has_run(const ComparedRow& row) { return estimate(throughput_series(row)).count > 0; }

// Returns a row of one worker that sends nothing and whose values, but for the workers, are among those of `row`.
std::optional<std::size_t> alone_like(const ComparisonReport& report, const ComparedRow& row) {
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const ComparedRow& other = report.rows[i];
    const bool is_alone = other.workers == 1 && other.mode.starts_with("allreduce") && has_run(other);
    const bool is_like = std::ranges::all_of(other.values, [&](const auto& value) {
      return value.first == "workers" || std::ranges::find(row.values, value) != row.values.end();
    });
    if (is_alone && is_like) return i;
  }
  return std::nullopt;
}

Difference unpaired_ratio(const ComparedRow& row, const ComparedRow& base) {
  const Estimate own = estimate(throughput_series(row)), of = estimate(throughput_series(base));
  return {.estimate = of.mean > 0 ? own.mean / of.mean : 0};
}

// Returns the ratio of each of `rows` to row `measure`, as one family.
std::vector<Difference> ratios_to(const ComparisonReport& report, std::size_t measure,
                                  const std::vector<std::size_t>& rows) {
  std::vector<Difference> all;
  if (!report.in_rounds) {
    for (const std::size_t row : rows) all.push_back(unpaired_ratio(report.rows[row], report.rows[measure]));
    return all;
  }
  std::vector<Series> series = {throughput_series(report.rows[measure])};
  for (const std::size_t row : rows) {
    if (row != measure) series.push_back(throughput_series(report.rows[row]));
  }
  const std::vector<Difference> paired = ratios(series, {.analyses = report.analyses});
  auto next = paired.begin() + 1;
  for (const std::size_t row : rows) all.push_back(row == measure ? Difference{.estimate = 1} : *next++);
  return all;
}

}  // namespace

std::vector<ScalingCurve> scaling_of(const ComparisonReport& report) {
  std::vector<ScalingCurve> curves;
  for (const RowsOverOption& rows : rows_over(report, "workers")) {
    std::vector<std::size_t> measured;
    std::vector<double> workers;
    for (const auto& [value, row] : rows.row_of) {
      if (!has_run(report.rows[row])) continue;
      measured.push_back(row);
      workers.push_back(value);
    }
    if (measured.size() < 2) continue;
    const std::optional<std::size_t> alone = alone_like(report, report.rows[measured.front()]);
    ScalingCurve curve{.name = name_of(rows),
                       .measure = alone.value_or(measured.front()),
                       .measure_workers = alone ? 1 : workers.front(),
                       .points = {}};
    const std::vector<Difference> all = ratios_to(report, curve.measure, measured);
    for (std::size_t i = 0; i < measured.size(); ++i) {
      curve.points.push_back({.row = measured[i],
                              .workers = workers[i],
                              .speedup = all[i],
                              .efficiency = all[i].estimate * curve.measure_workers / workers[i]});
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace syncopate::experiments
