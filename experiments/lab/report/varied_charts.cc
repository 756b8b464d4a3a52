#include "experiments/lab/report/varied_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "experiments/lab/report/scaling.h"

namespace syncopate::experiments {
namespace {

std::optional<double> number_in(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == '\0' && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<std::string> option_of(const ComparedRow& row, const std::string& option) {
  const auto found = std::ranges::find(row.values, option, &std::pair<std::string, std::string>::first);
  return found == row.values.end() ? std::nullopt : std::optional(found->second);
}

constexpr double kManyTimes = 20;  // the most of an axis over its least, from which on it is logarithmic

constexpr int kGrey = 8;
constexpr const char* kDottedNote =
    "Dotted: closed forms of the steady rate, with what each row's fastest worker computes by itself, or a pipeline's "
    "stages in the mean.";

// Adds what the first line would be if as many more workers did as much more.
void add_linear_scaling(std::vector<ChartSeries>& all) {
  const auto line = std::ranges::find_if(all, [](const ChartSeries& one) { return one.points.size() > 1; });
  if (line == all.end()) return;
  const ChartPoint first = line->points.front();
  ChartSeries linear{.name = fmt::format("linear from {} at {:g}", line->name, first.x), .points = {}, .marked = false};
  linear.colour = kGrey;
  for (const ChartPoint& point : line->points) {
    if (first.x > 0) linear.points.push_back({.x = point.x, .y = first.y * point.x / first.x});
  }
  all.push_back(std::move(linear));
}

// Whether all rows make more lines over `option` than can be told apart.
bool are_many_lines(const ComparisonReport& report, const std::string& option) {
  std::set<std::string> lines;
  for (const ComparedRow& row : report.rows) lines.insert(row.mode + values_text(row.values, option));
  return report.varied.size() > 1 && lines.size() > kMostNamedLines;
}

// Adds the closed form's rates over `option` as dashed lines in the colours of their modes.
void add_models(const ComparisonReport& report, const Looks& looks, const std::string& option, Chart& chart) {
  std::map<std::string, ChartSeries> models;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const ComparedRow& row = report.rows[i];
    const std::optional<std::string> text = option_of(row, option);
    const std::optional<double> x = text ? number_in(*text) : std::nullopt;
    if (!x || !row.step || !row.step->predicted) continue;
    ChartSeries& model = models[row.mode];
    model.points.push_back({.x = *x, .y = *row.step->predicted});
    model.colour = looks.of_mode(row.mode).colour;
  }
  for (auto& [mode, model] : models) {
    if (model.points.size() < 2) continue;
    model.name = mode + ", model";
    model.marked = false;
    model.dashed = true;
    std::ranges::sort(model.points, {}, &ChartPoint::x);
    chart.series.push_back(std::move(model));
    chart.note = kDottedNote;
  }
}

// Draws a line for each mode over the values of `option`, and a level for what does not depend on it. Combinations of
// the other varied options have lines of their own, or, if these would be many, parts. Empty unless there is a line of
// two numbers. `scales`: the figure is one that ideally grows as the option does.
Chart over_option(const ComparisonReport& report, const ComparisonFigures& figures, const Looks& looks,
                  const std::string& option, const ChartAxis& axis, const RowFigure& figure, bool scales = false) {
  Chart chart{.title = fmt::format("{} over {}", axis.label, option), .x = {.label = option}, .y = axis, .series = {}};
  const bool in_parts = are_many_lines(report, option);
  std::vector<PartLine> lines;
  std::vector<double> values;
  for (std::size_t i = 0; i < figures.rows.size(); ++i) {
    const ComparedRow& row = report.rows[i];
    const std::optional<RowValue> y = figure(figures.rows[i]);
    if (!y) continue;
    const std::optional<std::string> text = option_of(row, option);
    const std::optional<double> x = text ? number_in(*text) : std::nullopt;
    if (text && !x) continue;
    const std::string others = values_text(row.values, option);
    const std::string name = in_parts || others.empty() ? row.mode : row.mode + " " + others;
    std::vector<std::pair<std::string, std::string>> part;
    if (in_parts) part = row.values;
    std::erase_if(part, [&](const auto& one) { return one.first == option; });
    auto line = std::ranges::find_if(lines, [&](const PartLine& one) {
      return one.values == part && one.series.name == name && one.series.is_level == !x;
    });
    if (line == lines.end()) {
      const Look look = in_parts || report.varied.size() == 1 ? looks.of_mode(row.mode) : looks.of_row(i);
      line = lines.insert(
          lines.end(),
          {part, {.name = name, .points = {}, .is_level = !x, .colour = look.colour, .marker = look.marker}});
    }
    line->series.points.push_back(point_at(x.value_or(0), *y));
    if (x) values.push_back(*x);
  }
  if (std::ranges::none_of(lines,
                           [](const PartLine& one) { return !one.series.is_level && one.series.points.size() > 1; }))
    return {};
  const auto [least, most] = std::ranges::minmax(values);
  chart.x.logarithmic = least > 0 && most >= kManyTimes * least;
  for (PartLine& line : lines) std::ranges::sort(line.series.points, {}, &ChartPoint::x);
  set_lines(chart, lines);
  if (scales) {
    add_linear_scaling(chart.series);
    for (ChartView& view : chart.others) add_linear_scaling(view.series);
    chart.y.logarithmic = chart.x.logarithmic;
    chart.y.from_zero = !chart.y.logarithmic;
  }
  return chart;
}

// The curve's efficiency by the closed form of each row, over the same measure; without points where there is no form.
ChartSeries model_of(const ScalingCurve& curve, const ComparisonReport& report, int colour) {
  ChartSeries model{.name = curve.name + ", model", .points = {}, .marked = false, .colour = colour, .dashed = true};
  const double alone = estimate(throughput_series(report.rows[curve.measure])).mean / curve.measure_workers;
  for (const ScalingPoint& point : curve.points) {
    const std::optional<StepParts>& step = report.rows[point.row].step;
    if (!step || !step->predicted || alone <= 0) continue;
    model.points.push_back({.x = point.workers, .y = *step->predicted / alone / point.workers});
  }
  return model;
}

Chart efficiency_over_workers(const ComparisonReport& report, const Looks& looks) {
  Chart chart{.title = "Scaling efficiency over workers",
              .x = {.label = "workers"},
              .y = {.label = time_label(report, "efficiency"), .from_zero = true},
              .series = {}};
  const std::vector<ScalingCurve> curves = scaling_of(report);
  const bool in_parts = are_many_lines(report, "workers");
  std::vector<PartLine> lines;
  for (const ScalingCurve& curve : curves) {
    const std::size_t row = curve.points.front().row;
    const ComparedRow& first = report.rows[row];
    const bool by_mode = in_parts || report.varied.size() == 1;
    const Look look = by_mode ? looks.of_mode(first.mode) : looks.of_row(row);
    OptionValues part;
    for (const auto& one : first.values) {
      if (in_parts && one.first != "workers") part.push_back(one);
    }
    ChartSeries series{.name = in_parts ? first.mode : curve.name, .points = {}, .colour = look.colour};
    series.marker = look.marker;
    for (const ScalingPoint& point : curve.points) series.points.push_back({.x = point.workers, .y = point.efficiency});
    const double least = series.points.front().x, most = series.points.back().x;
    chart.x.logarithmic |= least > 0 && most >= kManyTimes * least;
    lines.push_back({part, std::move(series)});
    if (report.varied.size() == 1) lines.push_back({part, model_of(curve, report, look.colour)});
  }
  std::erase_if(lines, [](const PartLine& line) { return line.series.points.empty(); });
  if (lines.empty()) return chart;
  if (std::ranges::any_of(lines, [](const PartLine& line) { return line.series.dashed; })) chart.note = kDottedNote;
  ChartSeries alone{.name = "as one alone", .points = {{.y = 1}}, .marked = false, .is_level = true, .colour = kGrey};
  lines.push_back({{}, std::move(alone)});
  set_lines(chart, lines);
  return chart;
}

}  // namespace

std::vector<AnyChart> varied_charts(const ComparisonReport& report, const ComparisonFigures& figures,
                                    const Looks& looks) {
  const RowFigure speed = [](const RowFigures& row) { return row_value(row.samples_per_second); };
  const RowFigure quality = [](const RowFigures& row) { return row_value(row.quality); };
  const RowFigure to_target = [](const RowFigures& row) { return row_value(row.to_target); };
  const RowFigure megabytes = [](const RowFigures& row) { return row_value(row.megabytes); };
  const RowFigure memory = [](const RowFigures& row) { return row_value(row.memory_mb); };
  const RowFigure goodput = [](const RowFigures& row) { return row_value(row.goodput); };
  const ChartAxis speed_axis{.label = time_label(report, "samples/s of the whole job"), .from_zero = true};
  const ChartAxis target_axis{.label = time_label(report, "seconds to the target"), .from_zero = true};
  std::vector<AnyChart> charts;
  for (const std::string& option : report.varied) {
    const auto add = [&](const ChartAxis& axis, const RowFigure& figure, bool scales = false) {
      charts.emplace_back(over_option(report, figures, looks, option, axis, figure, scales));
    };
    add(speed_axis, speed, option == "workers");
    if (report.varied.size() == 1 && has_something(charts.back())) {
      add_models(report, looks, option, std::get<Chart>(charts.back()));
    }
    if (option == "workers") charts.emplace_back(efficiency_over_workers(report, looks));
    add(quality_axis(figures), quality);
    if (report.target > 0) add(target_axis, to_target);
    if (sends_differ(figures)) add({.label = "MB a step and worker", .from_zero = true}, megabytes);
    add({.label = "MB of memory, all processes", .from_zero = true}, memory);
    add({.label = time_label(report, "goodput"), .from_zero = true}, goodput);
  }
  return charts;
}

}  // namespace syncopate::experiments
