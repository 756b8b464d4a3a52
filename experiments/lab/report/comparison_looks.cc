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
  std::map<int, int> modes_of_colour;
  for (const auto& [mode, colour] : mode_colours(modes)) modes_[mode] = {colour, colour + modes_of_colour[colour]++};
  for (const int colour : row_colours(modes)) {
    rows_.push_back({colour, rows_of[modes[rows_.size()]]++});
  }
  const bool several = std::ranges::any_of(rows_of, [](const auto& mode) { return mode.second > 1; });
  for (std::size_t row = 0; row < rows_.size() && !several; ++row) rows_[row].marker = modes_.at(modes[row]).marker;
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

bool stands_in(const OptionValues& part, const OptionValues& values) {
  return std::ranges::all_of(values, [&](const auto& one) { return std::ranges::find(part, one) != part.end(); });
}

std::vector<OptionValues> parts_of(const std::vector<OptionValues>& all) {
  std::vector<OptionValues> parts;
  for (const OptionValues& values : all) {
    const bool is_within_one = std::ranges::any_of(
        all, [&](const OptionValues& other) { return other.size() > values.size() && stands_in(other, values); });
    if (!is_within_one && std::ranges::find(parts, values) == parts.end()) parts.push_back(values);
  }
  return parts;
}

void set_lines(Chart& chart, const std::vector<PartLine>& lines) {
  std::vector<OptionValues> all;
  for (const PartLine& line : lines) all.push_back(line.values);
  const std::vector<OptionValues> parts = parts_of(all);
  for (const OptionValues& part : parts) {
    std::vector<ChartSeries> series;
    for (const PartLine& line : lines) {
      if (stands_in(part, line.values)) series.push_back(line.series);
    }
    if (&part == &parts.back()) {
      chart.series = std::move(series);
      if (parts.size() > 1) chart.part = values_text(part, "");
    } else {
      chart.others.push_back({.x = chart.x, .series = std::move(series), .part = values_text(part, "")});
    }
  }
  chart.place = chart.others.size();
}

}  // namespace syncopate::experiments
