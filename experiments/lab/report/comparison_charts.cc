#include "experiments/lab/report/comparison_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>

#include "experiments/lab/report/chart.h"

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
    for (const ComparedRow& row : report.rows) {
      colours_.try_emplace(row.mode, static_cast<int>(colours_.size()));
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

std::string speed_ratios(const ComparisonReport& report, const ComparisonFigures& figures, const Looks& looks) {
  IntervalChart chart{.title = "Throughput of the whole job, as a ratio to " + report.rows.front().label,
                      .axis = figures.most_rounds >= kFewestRounds ? "ratio, with 95 % interval" : "ratio",
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
  return chart.rows.size() > 1 ? svg_of(chart) : "";
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

std::string quality_over_time(const ComparisonReport& report, const ComparisonFigures& figures, const Looks& looks) {
  Chart chart{.title = "Quality over training time, of the round of median speed",
              .x = {.label = "seconds of training", .from_zero = true},
              .y = quality_axis(figures),
              .series = {}};
  bool any = false;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    ChartSeries series{
        .name = report.rows[i].label, .points = {}, .colour = looks.of_row(i).colour, .marker = looks.of_row(i).marker};
    if (const std::optional<std::size_t> round = middle_round(report.rows[i])) {
      for (const EvalRecord& eval : report.rows[i].evals[*round]) {
        series.points.push_back({eval.training_seconds, headline_of(eval.accuracy, eval.figures)});
      }
    }
    any |= !series.points.empty();
    chart.series.push_back(std::move(series));
  }
  return any ? svg_of(chart) : "";
}

std::string rates_tried(const ComparisonReport& report, const ComparisonFigures& figures, const Looks& looks) {
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
  return chart.series.empty() ? "" : svg_of(chart);
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
std::string against_bytes(const ComparisonReport& report, const ComparisonFigures& figures, const Looks& looks,
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
  return chart.series.size() > 1 ? svg_of(chart) : "";
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

// Adds what the first line would be if as many more workers did as much more.
void add_linear_scaling(Chart& chart) {
  const auto line = std::ranges::find_if(chart.series, [](const ChartSeries& one) { return one.points.size() > 1; });
  if (line == chart.series.end()) return;
  const ChartPoint first = line->points.front();
  ChartSeries linear{.name = fmt::format("linear from {} at {:g}", line->name, first.x), .points = {}, .marked = false};
  linear.colour = static_cast<int>(chart.series.size());
  for (const ChartPoint& point : line->points) {
    if (first.x > 0) linear.points.push_back({.x = point.x, .y = first.y * point.x / first.x});
  }
  chart.series.push_back(std::move(linear));
}

// Draws a line for each mode, and for each combination of the other varied options, over the values of `option`, and a
// level for what does not depend on it. Empty unless there is a line of two numbers. `scales`: the figure is one that
// ideally grows as the option does.
std::string over_option(const ComparisonReport& report, const ComparisonFigures& figures, const Looks& looks,
                        const std::string& option, const ChartAxis& axis, const RowFigure& figure,
                        bool scales = false) {
  Chart chart{.title = fmt::format("{} over {}", axis.label, option), .x = {.label = option}, .y = axis, .series = {}};
  std::vector<double> values;
  for (std::size_t i = 0; i < figures.rows.size(); ++i) {
    const std::optional<Value> y = figure(figures.rows[i]);
    if (!y) continue;
    const std::optional<std::string> text = value_of(report.rows[i], option);
    const std::optional<double> x = text ? number_in(*text) : std::nullopt;
    if (text && !x) continue;
    std::string name = report.rows[i].mode;
    for (const auto& [other, value] : report.rows[i].values) {
      if (other != option) name += fmt::format(" {}={}", other, value);
    }
    auto series = std::ranges::find(chart.series, name, &ChartSeries::name);
    if (series == chart.series.end()) {
      const Look look = report.varied.size() > 1 ? looks.of_row(i) : looks.of_mode(report.rows[i].mode);
      series = chart.series.insert(
          chart.series.end(),
          {.name = name, .points = {}, .is_level = !x, .colour = look.colour, .marker = look.marker});
    }
    series->points.push_back(point_at(x.value_or(0), *y));
    if (x) values.push_back(*x);
  }
  for (ChartSeries& series : chart.series) std::ranges::sort(series.points, {}, &ChartPoint::x);
  if (std::ranges::none_of(chart.series, [](const auto& one) { return !one.is_level && one.points.size() > 1; }))
    return {};
  const auto [least, most] = std::ranges::minmax(values);
  chart.x.logarithmic = least > 0 && most >= kManyTimes * least;
  if (scales) {
    add_linear_scaling(chart);
    chart.y.logarithmic = chart.x.logarithmic;
    chart.y.from_zero = !chart.y.logarithmic;
  }
  return svg_of(chart);
}

}  // namespace

std::vector<std::string> comparison_charts(const ComparisonReport& report, const ComparisonFigures& figures) {
  if (report.rows.empty()) return {};
  const Looks looks(report);
  const RowFigure speed = [](const RowFigures& row) { return value_of(row.samples_per_second); };
  const RowFigure quality = [](const RowFigures& row) { return value_of(row.quality); };
  const RowFigure to_target = [](const RowFigures& row) { return value_of(row.to_target); };
  const RowFigure megabytes = [](const RowFigures& row) { return value_of(row.megabytes); };
  const RowFigure memory = [](const RowFigures& row) { return value_of(row.memory_mb); };
  const ChartAxis speed_axis{.label = "samples/s of the whole job", .from_zero = true};
  const ChartAxis target_axis{.label = "seconds to the target", .from_zero = true};
  std::vector<std::string> charts = {speed_ratios(report, figures, looks), quality_over_time(report, figures, looks),
                                     rates_tried(report, figures, looks)};
  if (sends_differ(figures)) {
    const auto add = [&](const std::string& title, const ChartAxis& axis, const RowFigure& figure) {
      charts.push_back(against_bytes(report, figures, looks, title, axis, figure));
    };
    add("What travels, and when the target is reached", target_axis, to_target);
    add("What travels, and what is learnt", quality_axis(figures), quality);
    add("What travels, and how fast", speed_axis, speed);
  }
  for (const std::string& option : report.varied) {
    const auto add = [&](const ChartAxis& axis, const RowFigure& figure) {
      charts.push_back(over_option(report, figures, looks, option, axis, figure));
    };
    charts.push_back(over_option(report, figures, looks, option, speed_axis, speed, option == "workers"));
    add(quality_axis(figures), quality);
    if (report.target > 0) add(target_axis, to_target);
    if (sends_differ(figures)) add({.label = "MB a step and worker", .from_zero = true}, megabytes);
    add({.label = "MB of memory, all processes", .from_zero = true}, memory);
  }
  std::erase(charts, "");
  return charts;
}

}  // namespace syncopate::experiments
