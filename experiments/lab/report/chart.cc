#include "experiments/lab/report/chart.h"

#include <algorithm>
#include <cmath>

namespace syncopate::experiments {
namespace {

bool draws(const std::vector<ChartSeries>& all) {
  return std::ranges::any_of(all, [](const ChartSeries& series) {
    return std::ranges::any_of(series.points, [&](const ChartPoint& point) {
      return std::isfinite(point.y) && (series.is_level || std::isfinite(point.x));
    });
  });
}

struct Draws {
  bool operator()(const Chart& chart) const {
    return draws(chart.series) ||
           std::ranges::any_of(chart.others, [](const ChartView& view) { return draws(view.series); });
  }
  bool operator()(const IntervalChart& chart) const {
    return std::ranges::any_of(chart.rows, [](const IntervalRow& row) { return std::isfinite(row.value); });
  }
  bool operator()(const BarChart& chart) const {
    return std::ranges::any_of(chart.series, [](const BarSeries& series) {
      return std::ranges::any_of(series.bars,
                                 [](const Bar& bar) { return std::isfinite(bar.from) && std::isfinite(bar.to); });
    });
  }
};

}  // namespace

bool has_something(const AnyChart& chart) { return std::visit(Draws(), chart); }

const std::string& title_of(const AnyChart& chart) {
  return std::visit([](const auto& one) -> const std::string& { return one.title; }, chart);
}

}  // namespace syncopate::experiments
