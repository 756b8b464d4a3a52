#include "experiments/lab/predict/reproduction_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "experiments/lab/predict/reproduction_text.h"
#include "experiments/lab/report/chart.h"

namespace syncopate::experiments {
namespace {

using prediction::CellUse;
using prediction::ReproducedCell;
using prediction::Reproduction;

constexpr double kSpanOfLogarithms = 8;  // an axis is logarithmic from this ratio of its ends on
constexpr int kHollow = 7;               // a marker that no curve has: the ring

struct Curve {
  std::string name;  // empty if it is the only one
  std::vector<ReproducedCell> cells;
};

// Cells by setup; all together where each setup has a size of its own. None if these are many, or short.
std::vector<Curve> curves_of(const Reproduction& table) {
  constexpr std::size_t kMostCurves = 6;
  constexpr std::size_t kFewestSizes = 3;
  std::vector<Curve> curves;
  std::set<int> sizes;
  for (const ReproducedCell& cell : table.cells) {
    sizes.insert(cell.workers);
    auto curve = std::ranges::find(curves, cell.setup, &Curve::name);
    if (curve == curves.end()) curve = curves.insert(curves.end(), {cell.setup, {}});
    curve->cells.push_back(cell);
  }
  if (sizes.size() == table.cells.size()) curves = {{"", table.cells}};
  const auto is_short = [](const Curve& curve) { return curve.cells.size() < kFewestSizes; };
  return curves.size() > kMostCurves || std::ranges::any_of(curves, is_short) ? std::vector<Curve>() : curves;
}

bool spans_much(std::vector<double> values) {
  const auto [least, most] = std::ranges::minmax(values);
  return least > 0 && most > kSpanOfLogarithms * least;
}

// A series without points, as cells of that use look in every chart.
ChartSeries series_of(const Reproduction& table, CellUse use) {
  ChartSeries series{.name = table.reference, .points = {}, .joined = false};
  if (use == CellUse::kCalibrated) {
    series.name += ", calibrated on";
    series.marker = kHollow;
  }
  if (use == CellUse::kLeftOut) {
    series.name += ", left out";
    series.colour = series.marker = 1;
  }
  return series;
}

Chart over_workers(const Reproduction& table, const std::vector<Curve>& curves) {
  Chart chart{.title = fmt::format("{}: over the number of workers", table.name),
              .x = {.label = "workers"},
              .y = {.label = fmt::format("{} and closed form, {}", table.reference, table.unit), .from_zero = true},
              .series = {}};
  std::vector<double> sizes, figures;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const Curve& curve = curves[i];
    const std::string name = curve.name.empty() ? "" : curve.name + ", ";
    const int number = static_cast<int>(i);
    ChartSeries line{.name = name + "closed form", .points = {}, .marked = false, .colour = number};
    ChartSeries points{
        .name = name + table.reference, .points = {}, .joined = false, .colour = number, .marker = number};
    ChartSeries calibrated{
        .name = name + "calibrated on", .points = {}, .joined = false, .colour = number, .marker = kHollow};
    for (const ReproducedCell& cell : curve.cells) {
      line.points.push_back({.x = static_cast<double>(cell.workers), .y = cell.predicted});
      ChartSeries& to = cell.use == CellUse::kCalibrated ? calibrated : points;
      to.points.push_back({.x = static_cast<double>(cell.workers), .y = cell.measured});
      sizes.push_back(cell.workers);
      figures.insert(figures.end(), {cell.measured, cell.predicted});
    }
    std::ranges::sort(line.points, {}, &ChartPoint::x);
    chart.series.push_back(std::move(line));
    chart.series.push_back(std::move(points));
    chart.series.push_back(std::move(calibrated));
  }
  chart.x.logarithmic = spans_much(sizes);
  chart.y.logarithmic = spans_much(figures);
  return chart;
}

Chart measured_over_predicted(const Reproduction& table) {
  Chart chart{.title = fmt::format("{}: every cell", table.name),
              .x = {.label = "closed form, " + table.unit},
              .y = {.label = fmt::format("{}, {}", table.reference, table.unit)},
              .series = {}};
  std::vector<double> all;
  for (const ReproducedCell& cell : table.cells) all.insert(all.end(), {cell.measured, cell.predicted});
  const auto [least, most] = std::ranges::minmax(all);
  chart.x.logarithmic = chart.y.logarithmic = spans_much(all);
  const double low = chart.x.logarithmic ? least : 0;
  chart.series.push_back({.name = fmt::format("closed form = {}", table.reference),
                          .points = {{.x = low, .y = low}, {.x = most, .y = most}},
                          .marked = false,
                          .colour = 6});
  for (const CellUse use : {CellUse::kPredicted, CellUse::kCalibrated, CellUse::kLeftOut}) {
    ChartSeries series = series_of(table, use);
    for (const ReproducedCell& cell : table.cells) {
      if (cell.use == use) series.points.push_back({.x = cell.predicted, .y = cell.measured});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Chart errors_of_cells(const Reproduction& table) {
  Chart chart{
      .title = fmt::format("{}: errors", table.name),
      .x = {.label = "closed form, " + table.unit},
      .y = {.label = "error of the closed form, %"},
      .series = {{.name = "no error", .points = {{.x = 0, .y = 0}}, .marked = false, .is_level = true, .colour = 6}}};
  std::vector<double> all;
  for (const CellUse use : {CellUse::kPredicted, CellUse::kLeftOut}) {
    ChartSeries series = series_of(table, use);
    series.name = name_of(use);
    for (const ReproducedCell& cell : table.cells) {
      if (cell.use != use) continue;
      series.points.push_back({.x = cell.predicted, .y = 100 * cell.error()});
      all.push_back(cell.predicted);
    }
    chart.series.push_back(std::move(series));
  }
  chart.x.logarithmic = spans_much(all);
  return chart;
}

}  // namespace

std::vector<AnyChart> reproduction_charts(const Reproduction& table) {
  constexpr double kSeen = 5e-4;  // an error that a figure with one decimal shows
  const std::vector<Curve> curves = curves_of(table);
  std::vector<AnyChart> charts = {curves.empty() ? measured_over_predicted(table) : over_workers(table, curves)};
  if (table.worst_error() >= kSeen) charts.push_back(errors_of_cells(table));
  return charts;
}

}  // namespace syncopate::experiments
