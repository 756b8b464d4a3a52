#include "experiments/lab/predict/advice_charts.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/text/format.h"
#include "experiments/lab/predict/plan_name.h"

namespace syncopate::experiments {
namespace {

using prediction::Family;

// The best of some ways at each size.
struct Line {
  const char* name;
  bool (*has)(const SimulatedWay& one);
  int colour;  // that of the mode on every page (mode_colours.h)
};

constexpr Line kLines[] = {
    {"allreduce", [](const SimulatedWay& one) { return one.is_synchronous() && one.family() == Family::kAllreduce; },
     0},
    {"sharded", [](const SimulatedWay& one) { return one.is_synchronous() && one.family() == Family::kSharded; }, 4},
    {"pipelines", [](const SimulatedWay& one) { return one.family() == Family::kPipelines; }, 5},
    {"parts of layers", [](const SimulatedWay& one) { return one.family() == Family::kParts; }, 6},
    {"servers on hosts of their own",
     [](const SimulatedWay& one) {
       return one.is_synchronous() && one.family() == Family::kServers && !one.way.plan.colocated;
     },
     2},
    {"servers on workers' hosts",
     [](const SimulatedWay& one) {
       return one.is_synchronous() && one.family() == Family::kServers && one.way.plan.colocated;
     },
     3},
    {"asynchronous workers", [](const SimulatedWay& one) { return one.way.asynchronous; }, 1},
};

bool is_cheapest(const AdviseRequest& request) { return request.goal == prediction::Goal::kCheapest; }

// What the goal wants little of: ms a step, or the cost of a million samples.
double figure_of(const AdviseRequest& request, int workers, const SimulatedWay& one) {
  const PlanFigures figures = figures_of(request.job, workers, one.way.plan, one.step);
  return is_cheapest(request) ? *figures.cost_per_million_samples : figures.step_seconds * 1e3;
}

ChartAxis axis_of(const AdviseRequest& request) {
  const char* label = is_cheapest(request) ? "simulated cost of a million samples" : "simulated ms a step";
  return {.label = label, .from_zero = true};
}

std::string name_at(const AdviseRequest& request, int workers, const SimulatedWay& one) {
  return way_name(one.way, one.addition, request.job.network(workers).hosts());
}

Chart over_workers(const AdviseRequest& request, const std::vector<AdvisedSize>& sizes) {
  Chart chart{.title = "The best of each mode, by workers",
              .x = {.label = "workers", .logarithmic = true},
              .y = axis_of(request),
              .series = {}};
  for (const Line& line : kLines) {
    ChartSeries series{.name = line.name, .points = {}, .colour = line.colour, .marker = line.colour};
    for (const AdvisedSize& size : sizes) {
      const auto best = std::ranges::find_if(size.simulated.ways, line.has);
      if (best == size.simulated.ways.end()) continue;
      series.points.push_back({.x = static_cast<double>(size.workers), .y = figure_of(request, size.workers, *best)});
    }
    std::ranges::sort(series.points, {}, &ChartPoint::x);
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

Chart crossover_chart(const std::vector<AdvisedSize>& sizes) {
  constexpr int kGrey = 8;
  Chart chart{.title = "Where the faster mode changes",
              .x = {.label = "workers", .logarithmic = true},
              .y = {.label = "speed of servers over allreduce's"},
              .series = {}};
  ChartSeries ratio{.name = "servers over allreduce", .points = {}, .colour = 2, .marker = 2};
  for (const AdvisedSize& size : sizes) {
    if (const auto value = servers_over_allreduce(size)) {
      ratio.points.push_back({.x = static_cast<double>(size.workers), .y = *value});
    }
  }
  std::ranges::sort(ratio.points, {}, &ChartPoint::x);
  if (ratio.points.size() < 2) return chart;
  chart.series.push_back({.name = "alike",
                          .points = {{.x = ratio.points.front().x, .y = 1}, {.x = ratio.points.back().x, .y = 1}},
                          .marked = false,
                          .colour = kGrey});
  chart.series.push_back(std::move(ratio));
  ChartSeries crossings{.name = "crossover", .points = {}, .joined = false, .colour = 1, .marker = 1};
  for (const Crossover& one : crossovers_of(sizes)) {
    crossings.points.push_back({.x = one.at, .y = 1, .label = fmt::format("about {} workers", place_of(one))});
  }
  chart.note =
      crossings.points.empty()
          ? "Above 1 servers are ahead, below 1 allreduce. No size has the other mode ahead."
          : "Above 1 servers are ahead, below 1 allreduce. A crossover lies on the line between two sizes that "
            "were simulated.";
  if (!crossings.points.empty()) chart.series.push_back(std::move(crossings));
  return chart;
}

// The ways of the table, a part for each size.
BarChart ways_chart(const AdviseRequest& request, const std::vector<AdvisedSize>& sizes) {
  BarChart chart{.title = "The best of each kind", .axis = axis_of(request), .rows = {}, .series = {}};
  for (const AdvisedSize& size : sizes) {
    if (size.simulated.ways.empty()) continue;
    BarPart part{.part = fmt::format("workers={}", size.workers), .rows = {}, .series = {}};
    BarSeries synchronous{.name = "synchronous", .bars = {}},
        others{.name = "asynchronous, or with an addition", .bars = {}, .colour = 1};
    for (const std::size_t place : best_of_each_kind(size.simulated.ways)) {
      const SimulatedWay& one = size.simulated.ways[place];
      const double figure = figure_of(request, size.workers, one);
      part.rows.push_back(name_at(request, size.workers, one));
      BarSeries& to = one.is_synchronous() ? synchronous : others;
      to.bars.push_back({.row = part.rows.back(),
                         .to = figure,
                         .label = is_cheapest(request) ? fmt::format("{:.3g}", figure) : format_ms(figure)});
    }
    part.series = {std::move(synchronous), std::move(others)};
    chart.others.push_back(std::move(part));
  }
  if (chart.others.empty()) return chart;
  chart.part = chart.others.size() > 1 ? std::move(chart.others.back().part) : "";
  chart.rows = std::move(chart.others.back().rows);
  chart.series = std::move(chart.others.back().series);
  chart.others.pop_back();
  return chart;
}

}  // namespace

std::vector<AnyChart> advice_charts(const AdviseRequest& request, const std::vector<AdvisedSize>& sizes) {
  const auto has_ways = [](const AdvisedSize& size) { return !size.simulated.ways.empty(); };
  std::vector<AnyChart> charts;
  if (std::ranges::count_if(sizes, has_ways) > 1) {
    charts.emplace_back(over_workers(request, sizes));
    charts.emplace_back(crossover_chart(sizes));
  }
  charts.emplace_back(ways_chart(request, sizes));
  return charts;
}

}  // namespace syncopate::experiments
