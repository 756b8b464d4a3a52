#include "experiments/lab/report/comparison_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include "experiments/lab/report/chart.h"
#include "experiments/lab/report/mode_colours.h"
#include "experiments/lab/report/scaling.h"
#include "experiments/lab/report/step_parts_chart.h"

namespace syncopate::experiments {
namespace {

// A value of one row, with its interval.
struct Value {
  double value = 0;
  std::optional<Interval> range = {};
};
using RowFigure = std::function<std::optional<Value>(const RowFigures&)>;

std::optional<Value> value_of(const Estimate& estimate) {
  if (estimate.count == 0) return std::nullopt;
  if (estimate.interval) return Value{estimate.mean, estimate.interval};
  return Value{estimate.mean,
               estimate.count > 1 ? std::optional(Interval{estimate.least, estimate.most}) : std::nullopt};
}

std::optional<Value> value_of(const std::optional<double>& value) {
  return value ? std::optional(Value{*value}) : std::nullopt;
}

// The look of a row in every chart: a colour for its mode, and a marker for its place among the mode's rows, or for the
// mode if each mode has one row.
struct Look {
  int colour = 0, marker = 0;
};

class Looks {
 public:
  explicit Looks(const ComparisonReport& report) {
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
  Look of_row(std::size_t row) const { return rows_[row]; }
  Look of_mode(const std::string& mode) const { return {colours_.at(mode), colours_.at(mode)}; }

 private:
  std::map<std::string, int> colours_;
  std::vector<Look> rows_;
};

ChartPoint point_at(double x, const Value& value, const std::string& label = "") {
  ChartPoint point{.x = x, .y = value.value, .label = label};
  if (value.range) point.low = value.range->low, point.high = value.range->high;
  return point;
}

ChartAxis quality_axis(const ComparisonFigures& figures) { return {.label = "test " + figures.quality, .most = 1}; }

std::string joined_values(const ComparedRow& row) {
  std::string text;
  for (const auto& [option, value] : row.values) text += (text.empty() ? "" : " ") + value;
  return text;
}

constexpr std::size_t kMostNamedLines = 6;  // more are hard to tell apart

// The label of an axis of times, or of rates.
std::string time_label(const ComparisonReport& report, const std::string& label) {
  return report.simulated ? "simulated " + label : label;
}

// "workers=2 servers=1", without the option `but`.
std::string values_text(const std::vector<std::pair<std::string, std::string>>& values, const std::string& but) {
  std::string text;
  for (const auto& [option, value] : values) {
    if (option != but) text += fmt::format("{}{}={}", text.empty() ? "" : " ", option, value);
  }
  return text;
}

// Adds a series to the view of that name, which is added unless it is there. The first view is the chart itself.
void add_to_view(Chart& chart, const std::string& name, ChartSeries series) {
  if (chart.series.empty()) chart.view = name;
  if (chart.view == name) return chart.series.push_back(std::move(series));
  auto view = std::ranges::find(chart.others, name, &ChartView::name);
  if (view == chart.others.end()) view = chart.others.insert(view, {.name = name, .x = chart.x, .series = {}});
  view->series.push_back(std::move(series));
}

IntervalChart speed_ratios(const ComparisonReport& report, const ComparisonFigures& figures, const Looks& looks) {
  IntervalChart chart{
      .title = "Throughput of the whole job, as a ratio to " + report.rows.front().label,
      .axis = time_label(report, figures.most_rounds >= kFewestRounds ? "ratio, with 95 % interval" : "ratio"),
      .rows = {}};
  for (std::size_t i = 0; i < figures.rows.size(); ++i) {
    const Difference& speed = figures.rows[i].speed;
    if (i > 0 && (figures.rows[i].samples_per_second.count == 0 || (report.in_rounds && speed.pairs == 0))) continue;
    IntervalRow row{.name = report.rows[i].label,
                    .value = i == 0 ? 1 : speed.estimate,
                    .colour = looks.of_row(i).colour,
                    .marker = looks.of_row(i).marker};
    if (i > 0 && speed.interval) row.low = speed.interval->low, row.high = speed.interval->high;
    chart.rows.push_back(std::move(row));
  }
  if (chart.rows.size() < 2) chart.rows.clear();
  return chart;
}

// Returns the round with the median throughput, or the first that there is, whose curve represents the row.
std::optional<std::size_t> middle_round(const ComparedRow& row) {
  std::vector<std::size_t> rounds;
  for (std::size_t round = 0; round < row.rounds.size(); ++round) {
    if (row.rounds[round] && round < row.evals.size()) rounds.push_back(round);
  }
  if (rounds.empty()) return std::nullopt;
  std::ranges::stable_sort(rounds, {}, [&](std::size_t round) { return row.rounds[round]->samples_per_second; });
  return rounds[(rounds.size() - 1) / 2];
}

// A line for each row; where many rows differ in one option, a view for each of its values.
Chart quality_over_time(const ComparisonReport& report, const ComparisonFigures& figures, const Looks& looks) {
  Chart chart{.title = "Quality over training time, of the round of median speed",
              .x = {.label = time_label(report, "seconds of training"), .from_zero = true},
              .y = quality_axis(figures),
              .series = {}};
  const bool in_views = report.varied.size() == 1 && report.rows.size() > kMostNamedLines;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const ComparedRow& row = report.rows[i];
    const std::optional<std::size_t> round = middle_round(row);
    if (!round) continue;
    const Look look = in_views ? looks.of_mode(row.mode) : looks.of_row(i);
    ChartSeries series{
        .name = in_views ? row.mode : row.label, .points = {}, .colour = look.colour, .marker = look.marker};
    for (const EvalRecord& eval : row.evals[*round]) {
      series.points.push_back({eval.training_seconds, headline_of(eval.accuracy, eval.figures)});
    }
    add_to_view(chart, in_views ? values_text(row.values, "") : "", std::move(series));
  }
  return chart;
}

Chart rates_tried(const ComparisonReport& report, const ComparisonFigures& figures, const Looks& looks) {
  Chart chart{.title = "What came of the rates that were tried, mean and range over seeds",
              .x = {.label = "learning rate", .logarithmic = true},
              .y = quality_axis(figures),
              .series = {}};
  for (const RateTrial& trial : report.trials) {
    auto series = std::ranges::find(chart.series, trial.label, &ChartSeries::name);
    if (series == chart.series.end()) {
      const auto row = std::ranges::find(report.rows, trial.label, &ComparedRow::label);
      const Look look =
          row == report.rows.end() ? Look{} : looks.of_row(static_cast<std::size_t>(row - report.rows.begin()));
      series = chart.series.insert(chart.series.end(),
                                   {.name = trial.label, .points = {}, .colour = look.colour, .marker = look.marker});
    }
    const Series by_seed(trial.quality.begin(), trial.quality.end());
    const bool diverged = std::ranges::any_of(trial.quality, [](double quality) { return !std::isfinite(quality); });
    if (diverged || trial.quality.empty()) continue;
    Value value{estimate(by_seed).mean, Interval{estimate(by_seed).least, estimate(by_seed).most}};
    if (trial.quality.size() == 1) value.range.reset();
    series->points.push_back(point_at(trial.rate, value));
  }
  for (ChartSeries& series : chart.series) std::ranges::sort(series.points, {}, &ChartPoint::x);
  return chart;
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

// Draws a mark for each row, labelled with what was varied, or, if nothing was, with its label.
Chart against_bytes(const ComparisonReport& report, const ComparisonFigures& figures, const Looks& looks,
                    const std::string& title, const ChartAxis& axis, const RowFigure& figure) {
  Chart chart{
      .title = title, .x = {.label = "MB a step and worker, out and in", .logarithmic = true}, .y = axis, .series = {}};
  for (std::size_t i = 0; i < figures.rows.size(); ++i) {
    const std::optional<Value> value = figure(figures.rows[i]);
    if (!value || !figures.rows[i].megabytes) continue;
    chart.series.push_back({.name = report.rows[i].label,
                            .points = {point_at(*figures.rows[i].megabytes, *value, joined_values(report.rows[i]))},
                            .joined = false,
                            .colour = looks.of_row(i).colour,
                            .marker = looks.of_row(i).marker});
  }
  if (chart.series.size() < 2) chart.series.clear();
  return chart;
}

std::optional<double> number_in(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == '\0' && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<std::string> value_of(const ComparedRow& row, const std::string& option) {
  const auto found = std::ranges::find(row.values, option, &std::pair<std::string, std::string>::first);
  return found == row.values.end() ? std::nullopt : std::optional(found->second);
}

constexpr double kManyTimes = 20;  // the most of an axis over its least, from which on it is logarithmic

constexpr int kGrey = 8;

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
    const std::optional<std::string> text = value_of(row, option);
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
    chart.note = "Dotted: closed forms, with what each row's fastest worker computes by itself.";
  }
}

// Draws a line for each mode over the values of `option`, and a level for what does not depend on it. Combinations of
// the other varied options have lines of their own, or, if these would be many, views. Empty unless there is a line of
// two numbers. `scales`: the figure is one that ideally grows as the option does.
Chart over_option(const ComparisonReport& report, const ComparisonFigures& figures, const Looks& looks,
                  const std::string& option, const ChartAxis& axis, const RowFigure& figure, bool scales = false) {
  Chart chart{.title = fmt::format("{} over {}", axis.label, option), .x = {.label = option}, .y = axis, .series = {}};
  const bool in_views = are_many_lines(report, option);
  struct Line {
    std::string view;
    ChartSeries series;
  };
  std::vector<Line> lines;
  std::vector<double> values;
  for (std::size_t i = 0; i < figures.rows.size(); ++i) {
    const ComparedRow& row = report.rows[i];
    const std::optional<Value> y = figure(figures.rows[i]);
    if (!y) continue;
    const std::optional<std::string> text = value_of(row, option);
    const std::optional<double> x = text ? number_in(*text) : std::nullopt;
    if (text && !x) continue;
    const std::string others = values_text(row.values, option);
    const std::string name = in_views || others.empty() ? row.mode : row.mode + " " + others;
    const std::string view = in_views ? others : "";
    auto line = std::ranges::find_if(lines, [&](const Line& one) {
      return one.view == view && one.series.name == name && one.series.is_level == !x;
    });
    if (line == lines.end()) {
      const Look look = in_views || report.varied.size() == 1 ? looks.of_mode(row.mode) : looks.of_row(i);
      line = lines.insert(
          lines.end(),
          {view, {.name = name, .points = {}, .is_level = !x, .colour = look.colour, .marker = look.marker}});
    }
    line->series.points.push_back(point_at(x.value_or(0), *y));
    if (x) values.push_back(*x);
  }
  if (std::ranges::none_of(lines, [](const Line& one) { return !one.series.is_level && one.series.points.size() > 1; }))
    return {};
  const auto [least, most] = std::ranges::minmax(values);
  chart.x.logarithmic = least > 0 && most >= kManyTimes * least;
  for (Line& line : lines) {
    std::ranges::sort(line.series.points, {}, &ChartPoint::x);
    add_to_view(chart, line.view, std::move(line.series));
  }
  if (scales) {
    add_linear_scaling(chart.series);
    for (ChartView& view : chart.others) add_linear_scaling(view.series);
    chart.y.logarithmic = chart.x.logarithmic;
    chart.y.from_zero = !chart.y.logarithmic;
  }
  return chart;
}

Chart efficiency_over_workers(const ComparisonReport& report, const Looks& looks) {
  Chart chart{.title = "Scaling efficiency over workers",
              .x = {.label = "workers"},
              .y = {.label = time_label(report, "efficiency"), .from_zero = true},
              .series = {}};
  const std::vector<ScalingCurve> curves = scaling_of(report);
  for (const ScalingCurve& curve : curves) {
    const std::size_t row = curve.points.front().row;
    const Look look = report.varied.size() > 1 ? looks.of_row(row) : looks.of_mode(report.rows[row].mode);
    ChartSeries series{.name = curve.name, .points = {}, .colour = look.colour, .marker = look.marker};
    for (const ScalingPoint& point : curve.points) series.points.push_back({.x = point.workers, .y = point.efficiency});
    const double least = series.points.front().x, most = series.points.back().x;
    chart.x.logarithmic |= least > 0 && most >= kManyTimes * least;
    chart.series.push_back(std::move(series));
  }
  if (!curves.empty()) {
    chart.series.push_back(
        {.name = "as one alone", .points = {{.y = 1}}, .marked = false, .is_level = true, .colour = kGrey});
  }
  return chart;
}

}  // namespace

std::vector<AnyChart> comparison_charts(const ComparisonReport& report, const ComparisonFigures& figures) {
  if (report.rows.empty()) return {};
  const Looks looks(report);
  const RowFigure speed = [](const RowFigures& row) { return value_of(row.samples_per_second); };
  const RowFigure quality = [](const RowFigures& row) { return value_of(row.quality); };
  const RowFigure to_target = [](const RowFigures& row) { return value_of(row.to_target); };
  const RowFigure megabytes = [](const RowFigures& row) { return value_of(row.megabytes); };
  const RowFigure memory = [](const RowFigures& row) { return value_of(row.memory_mb); };
  const ChartAxis speed_axis{.label = time_label(report, "samples/s of the whole job"), .from_zero = true};
  const ChartAxis target_axis{.label = time_label(report, "seconds to the target"), .from_zero = true};
  // More workers do more at once: figures of rows with different numbers of them are not of the same job.
  const bool workers_vary = std::ranges::find(report.varied, "workers") != report.varied.end();
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
  }
  if (!workers_vary) charts.emplace_back(speed_ratios(report, figures, looks));
  charts.emplace_back(step_parts_chart(report));
  charts.emplace_back(quality_over_time(report, figures, looks));
  charts.emplace_back(rates_tried(report, figures, looks));
  if (sends_differ(figures) && !workers_vary) {
    const auto add = [&](const std::string& title, const ChartAxis& axis, const RowFigure& figure) {
      charts.emplace_back(against_bytes(report, figures, looks, title, axis, figure));
    };
    add("What travels, and when the target is reached", target_axis, to_target);
    add("What travels, and what is learnt", quality_axis(figures), quality);
    add("What travels, and how fast", speed_axis, speed);
  }
  std::erase_if(charts, [](const AnyChart& chart) { return !has_something(chart); });
  for (AnyChart& chart : charts) {
    if (report.simulated && !title_of(chart).starts_with("simulated")) {
      std::visit([](auto& one) { one.title += ", simulated"; }, chart);
    }
  }
  return charts;
}

}  // namespace syncopate::experiments
