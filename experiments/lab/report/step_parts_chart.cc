#include "experiments/lab/report/step_parts_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "common/text/format.h"

namespace syncopate::experiments {

BarChart step_parts_chart(const ComparisonReport& report) {
  constexpr double kDrawnShare = 0.01;  // of some row's step
  constexpr int kPartColours = 8;
  BarChart chart{
      .title = "Where the time of a step went",
      .axis = {.label = report.simulated ? "simulated ms of a mean step" : "ms of a mean step", .from_zero = true},
      .rows = {},
      .series = {{.name = "ideal", .bars = {}, .colour = 0}},
      .note = "Ideal is what the fastest worker computes by itself."};
  std::map<std::string, std::size_t> place;
  for (const ComparedRow& row : report.rows) {
    if (!row.step) continue;
    chart.rows.push_back(row.label);
    chart.series[0].bars.push_back({row.label, 0, row.step->ideal_ms});
    double reached = row.step->ideal_ms;
    for (const auto& [name, ms] : row.step->parts) {
      if (ms < kDrawnShare * row.step->measured_ms) continue;
      const auto [at, is_new] = place.try_emplace(name, chart.series.size());
      if (is_new) {
        const int colour = 1 + static_cast<int>(chart.series.size() - 1) % (kPartColours - 1);
        chart.series.push_back({.name = name, .bars = {}, .colour = colour});
      }
      chart.series[at->second].bars.push_back(
          {row.label, reached, reached + ms, "", fmt::format("{} ms", format_ms(ms))});
      reached += ms;
    }
  }
  return chart;
}

}  // namespace syncopate::experiments
