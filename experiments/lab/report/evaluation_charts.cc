#include "experiments/lab/report/evaluation_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace syncopate::experiments {

std::vector<AnyChart> evaluation_charts(const std::vector<std::vector<EvalRecord>>& evals) {
  const auto has_points = [](const std::vector<EvalRecord>& one) { return !one.empty(); };
  const auto first = std::ranges::find_if(evals, has_points);
  if (first == evals.end()) return {};
  const std::string name = headline_name(first->front().figures);
  const ChartAxis time{.label = "seconds of training", .from_zero = true};
  Chart quality{.title = name + " on the test set", .x = time, .y = {.label = "test " + name, .most = 1}, .series = {}};
  Chart loss{.title = "Loss on the test set", .x = time, .y = {.label = "test loss"}, .series = {}};
  for (std::size_t repeat = 0; repeat < evals.size(); ++repeat) {
    const int number = static_cast<int>(repeat);
    const std::string series = evals.size() == 1 ? "" : fmt::format("repeat {}", repeat);
    quality.series.push_back({.name = series, .points = {}, .colour = number, .marker = number});
    loss.series.push_back(quality.series.back());
    for (const EvalRecord& eval : evals[repeat]) {
      quality.series.back().points.push_back({eval.training_seconds, headline_of(eval.accuracy, eval.figures)});
      loss.series.back().points.push_back({eval.training_seconds, eval.loss});
    }
  }
  return {std::move(quality), std::move(loss)};
}

}  // namespace syncopate::experiments
