#include "experiments/report/comparison_charts.h"

namespace syncopate::experiments {

std::vector<Chart> comparison_charts(const ComparisonReport& report, const ComparisonFigures& figures) {
  Chart chart{.title = "Quality on the test set over training time",
              .x = {"seconds of training"},
              .y = {"test " + figures.quality},
              .series = {}};
  for (const ComparedRow& row : report.rows) {
    ChartSeries series{row.label, {}};
    if (!row.evals.empty()) {
      for (const EvalRecord& eval : row.evals.front()) {
        series.points.push_back({eval.training_seconds, headline_of(eval.accuracy, eval.figures)});
      }
    }
    chart.series.push_back(std::move(series));
  }
  return {chart};
}

}  // namespace syncopate::experiments
