#include "experiments/lab/report/comparison_looks.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/lab/report/mode_colours.h"

namespace syncopate::experiments {

std::optional<RowValue> row_value(const Estimate& estimate) {
  if (estimate.count == 0) return std::nullopt;
  if (estimate.interval) return RowValue{estimate.mean, estimate.interval};
  return RowValue{estimate.mean,
                  estimate.count > 1 ? std::optional(Interval{estimate.least, estimate.most}) : std::nullopt};
}

std::optional<RowValue> row_value(const std::optional<double>& value) {
  return value ? std::optional(RowValue{*value}) : std::nullopt;
}

Looks::Looks(const ComparisonReport& report) {
  std::map<std::string, int> rows_of;
  std::vector<std::string> modes;
  for (const ComparedRow& row : report.rows) modes.push_back(row.mode);
  colours_ = mode_colours(modes);
  for (const ComparedRow& row : report.rows) {
    rows_.push_back({colours_.at(row.mode), rows_of[row.mode]++});
  }
  const bool several = std::ranges::any_of(rows_of, [](const auto& mode) { return mode.second > 1; });
  for (Look& look : rows_) {
    if (!several) look.marker = look.colour;
  }
}

ChartPoint point_at(double x, const RowValue& value, const std::string& label) {
  ChartPoint point{.x = x, .y = value.value, .label = label};
  if (value.range) point.low = value.range->low, point.high = value.range->high;
  return point;
}

ChartAxis quality_axis(const ComparisonFigures& figures) { return {.label = "test " + figures.quality, .most = 1}; }

std::string time_label(const ComparisonReport& report, const std::string& label) {
  return report.simulated ? "simulated " + label : label;
}

std::string values_text(const std::vector<std::pair<std::string, std::string>>& values, const std::string& but) {
  std::string text;
  for (const auto& [option, value] : values) {
    if (option != but) text += fmt::format("{}{}={}", text.empty() ? "" : " ", option, value);
  }
  return text;
}

bool sends_differ(const ComparisonFigures& figures) {
  std::vector<double> sent;
  for (const RowFigures& row : figures.rows) {
    if (row.megabytes && *row.megabytes > 0) sent.push_back(*row.megabytes);
  }
  if (sent.size() < 2) return false;
  const auto [least, most] = std::ranges::minmax(sent);
  return most > 1.05 * least;
}

void set_lines(Chart& chart, const std::vector<ViewedLine>& lines) {
  std::vector<std::string> views;
  for (const ViewedLine& line : lines) {
    if (!line.view.empty() && std::ranges::find(views, line.view) == views.end()) views.push_back(line.view);
  }
  const auto lines_of = [&](const std::string& view) {
    std::vector<ChartSeries> series;
    for (const ViewedLine& line : lines) {
      if (line.view.empty() || line.view == view) series.push_back(line.series);
    }
    return series;
  };
  chart.view = views.empty() ? "" : views.front();
  chart.series = lines_of(chart.view);
  for (std::size_t i = 1; i < views.size(); ++i) {
    chart.others.push_back({.name = views[i], .x = chart.x, .series = lines_of(views[i])});
  }
}

}  // namespace syncopate::experiments
