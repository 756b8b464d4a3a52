#include "experiments/lab/report/step_parts_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "common/text/format.h"
#include "experiments/lab/report/comparison_looks.h"

namespace syncopate::experiments {
namespace {

constexpr std::size_t kMostBars = 24;  // of more there are parts, where several options are varied

using PartPlaces = std::map<std::string, std::size_t>;  // the series of each part of a step; 0 is the ideal step

// Leaves out what takes no hundredth of any row's step. A part has the same colour in all views.
PartPlaces places_of(const ComparisonReport& report) {
  constexpr double kDrawnShare = 0.01;
  PartPlaces places;
  for (const ComparedRow& row : report.rows) {
    if (!row.step) continue;
    for (const auto& [name, ms] : row.step->parts) {
      if (ms >= kDrawnShare * row.step->measured_ms) places.try_emplace(name, places.size() + 1);
    }
  }
  return places;
}

void add_bars(const ComparedRow& row, const std::string& name, const PartPlaces& places, BarPart& to) {
  to.rows.push_back(name);
  to.series[0].bars.push_back({name, 0, row.step->ideal_ms});
  double reached = row.step->ideal_ms;
  for (const auto& [part, ms] : row.step->parts) {
    const auto place = places.find(part);
    if (place == places.end() || ms <= 0) continue;
    to.series[place->second].bars.push_back({name, reached, reached + ms, "", fmt::format("{} ms", format_ms(ms))});
    reached += ms;
  }
}

std::vector<BarSeries> empty_series(const PartPlaces& places) {
  constexpr int kPartColours = 8;
  std::vector<BarSeries> series(places.size() + 1);
  series[0].name = "ideal";
  for (const auto& [name, place] : places) {
    series[place].name = name;
    series[place].colour = 1 + static_cast<int>(place - 1) % (kPartColours - 1);
  }
  return series;
}

}  // namespace

BarChart step_parts_chart(const ComparisonReport& report) {
  BarChart chart{
      .title = "Where the time of a step went",
      .axis = {.label = report.simulated ? "simulated ms of a mean step" : "ms of a mean step", .from_zero = true},
      .rows = {},
      .series = {},
      .note = "Ideal is what the fastest worker computes by itself; a pipeline's stages do so in the mean."};
  const bool in_parts = report.varied.size() > 1 && report.rows.size() > kMostBars;
  // A view for each combination of all options but the first.
  const auto view_of = [&](const ComparedRow& row) {
    OptionValues values;
    for (const auto& one : row.values) {
      if (in_parts && one.first != report.varied.front()) values.push_back(one);
    }
    return values;
  };
  const PartPlaces places = places_of(report);
  std::vector<OptionValues> all;
  for (const ComparedRow& row : report.rows) all.push_back(view_of(row));
  for (const OptionValues& values : parts_of(all)) {
    BarPart view{.part = values_text(values, ""), .rows = {}, .series = empty_series(places)};
    for (const ComparedRow& row : report.rows) {
      if (!row.step || !stands_in(values, view_of(row))) continue;
      OptionValues own = row.values;
      std::erase_if(own, [&](const auto& one) { return stands_in(values, {one}); });
      const std::string name = row.mode + (own.empty() ? "" : " ") + values_text(own, "");
      add_bars(row, in_parts ? name : row.label, places, view);
    }
    chart.others.push_back(std::move(view));
  }
  if (chart.others.empty()) return chart;
  chart.part = std::move(chart.others.back().part);
  chart.rows = std::move(chart.others.back().rows);
  chart.series = std::move(chart.others.back().series);
  chart.others.pop_back();
  return chart;
}

}  // namespace syncopate::experiments
