#include "experiments/lab/predict/prediction_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/lab/predict/predict_text.h"
#include "experiments/lab/predict/prediction_record.h"
#include "experiments/lab/report/chart.h"
#include "experiments/lab/report/html_page.h"

namespace syncopate::experiments {
namespace {

// A plan at all sizes: those on workers' hosts have as many servers as there are hosts.
std::string line_of(const PredictedRow& row) {
  return row.plan.colocated ? "a server on each host" : plan_name(row.plan, 0);
}

void add_point(std::vector<ChartSeries>& all, const ChartSeries& like, ChartPoint point) {
  auto series = std::ranges::find(all, like.name, &ChartSeries::name);
  if (series == all.end()) series = all.insert(all.end(), like);
  series->points.push_back(std::move(point));
}

Chart over_workers(const std::vector<PredictedRow>& rows) {
  Chart chart{.title = "Each exchange, by workers",
              .x = {.label = "workers", .logarithmic = true},
              .y = {.label = "ms a step, closed form", .from_zero = true},
              .series = {}};
  std::vector<ChartSeries> simulated;
  std::vector<std::string> names;
  for (const PredictedRow& row : rows) {
    const std::string name = line_of(row);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    const int colour = static_cast<int>(std::ranges::find(names, name) - names.begin());
    const double workers = row.workers;
    add_point(chart.series, {.name = name, .points = {}, .colour = colour, .marker = colour},
              {workers, row.step * 1e3});
    if (!row.simulated) continue;
    const ChartSeries beside{
        .name = name + ", simulated", .points = {}, .marked = false, .colour = colour, .dashed = true};
    add_point(simulated, beside, {workers, *row.simulated * 1e3});
  }
  if (!simulated.empty()) chart.note = "Dotted: the same step of this project's own strategies, in virtual time.";
  chart.series.insert(chart.series.end(), simulated.begin(), simulated.end());
  for (ChartSeries& series : chart.series) std::ranges::sort(series.points, {}, &ChartPoint::x);
  return chart;
}

}  // namespace

std::vector<FlatRow> prediction_rows(const PredictRequest& request, const std::vector<PredictedRow>& rows) {
  std::vector<FlatRow> all;
  for (const PredictedRow& one : rows) {
    FlatRow row = {{"workers", one.workers},
                   {"exchange", plan_name(one.plan, request.job.network(one.workers).hosts())}};
    add_figures(figures_of(request.job, one.workers, one.plan, one.step), row);
    row["simulated_step_ms"] = nullptr;
    row["form_error"] = nullptr;
    if (one.simulated) {
      row["simulated_step_ms"] = *one.simulated * 1e3;
      row["form_error"] = one.step / *one.simulated - 1;
    }
    all.push_back(std::move(row));
  }
  return all;
}

std::string prediction_json(const PredictRequest& request, const std::vector<PredictedRow>& rows,
                            const std::string& command) {
  const nlohmann::ordered_json json = {
      {"command", command}, {"job", job_json(request.job)}, {"rows", prediction_rows(request, rows)}};
  return json.dump(1) + "\n";
}

std::string prediction_html(const PredictRequest& request, const std::vector<PredictedRow>& rows,
                            const std::string& command) {
  const std::string body = opening_html(title_of(request.job), command) + html_charts({over_workers(rows)}) +
                           html_table(predict_rows(request, rows), "Predictions");
  return html_page(fmt::format("Predictions for {}", request.job.profile.model), body);
}

}  // namespace syncopate::experiments
