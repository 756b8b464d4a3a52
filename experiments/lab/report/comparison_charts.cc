#include "experiments/lab/report/comparison_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/lab/report/comparison_curves.h"
#include "experiments/lab/report/comparison_looks.h"
#include "experiments/lab/report/step_parts_chart.h"
#include "experiments/lab/report/varied_charts.h"

namespace syncopate::experiments {
namespace {

std::string joined_values(const ComparedRow& row) {
  std::string text;
  for (const auto& [option, value] : row.values) text += (text.empty() ? "" : " ") + value;
  return text;
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
    RowValue value{estimate(by_seed).mean, Interval{estimate(by_seed).least, estimate(by_seed).most}};
    if (trial.quality.size() == 1) value.range.reset();
    series->points.push_back(point_at(trial.rate, value));
  }
  for (ChartSeries& series : chart.series) std::ranges::sort(series.points, {}, &ChartPoint::x);
  return chart;
}

// Draws a mark for each row, in the colour of its mode, labelled with what was varied.
Chart against_bytes(const ComparisonReport& report, const ComparisonFigures& figures, const Looks& looks,
                    const std::string& title, const ChartAxis& axis, const RowFigure& figure) {
  Chart chart{
      .title = title, .x = {.label = "MB a step and worker, out and in", .logarithmic = true}, .y = axis, .series = {}};
  std::size_t marks = 0;
  for (std::size_t i = 0; i < figures.rows.size(); ++i) {
    const ComparedRow& row = report.rows[i];
    const std::optional<RowValue> value = figure(figures.rows[i]);
    if (!value || !figures.rows[i].megabytes) continue;
    auto series = std::ranges::find(chart.series, row.mode, &ChartSeries::name);
    if (series == chart.series.end()) {
      const Look look = looks.of_mode(row.mode);
      series = chart.series.insert(
          series, {.name = row.mode, .points = {}, .joined = false, .colour = look.colour, .marker = look.marker});
    }
    series->points.push_back(point_at(*figures.rows[i].megabytes, *value, joined_values(row)));
    ++marks;
  }
  if (marks < 2) chart.series.clear();
  return chart;
}

}  // namespace

std::vector<AnyChart> comparison_charts(const ComparisonReport& report, const ComparisonFigures& figures) {
  if (report.rows.empty()) return {};
  const Looks looks(report);
  // More workers do more at once: figures of rows with different numbers of them are not of the same job.
  const bool workers_vary = std::ranges::find(report.varied, "workers") != report.varied.end();
  std::vector<AnyChart> charts = varied_charts(report, figures, looks);
  if (!workers_vary) charts.emplace_back(speed_ratios(report, figures, looks));
  charts.emplace_back(step_parts_chart(report));
  for (AnyChart& curve : comparison_curves(report, figures, looks)) charts.push_back(std::move(curve));
  charts.emplace_back(rates_tried(report, figures, looks));
  if (sends_differ(figures) && !workers_vary) {
    const auto add = [&](const std::string& title, const ChartAxis& axis, const RowFigure& figure) {
      charts.emplace_back(against_bytes(report, figures, looks, title, axis, figure));
    };
    add("What travels, and when the target is reached",
        {.label = time_label(report, "seconds to the target"), .from_zero = true},
        [](const RowFigures& row) { return row_value(row.to_target); });
    add("What travels, and what is learnt", quality_axis(figures),
        [](const RowFigures& row) { return row_value(row.quality); });
    add("What travels, and how fast", {.label = time_label(report, "samples/s of the whole job"), .from_zero = true},
        [](const RowFigures& row) { return row_value(row.samples_per_second); });
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
