#include "experiments/lab/predict/fitted_files.h"

#include <fmt/format.h>

#include "experiments/lab/predict/fitted_text.h"
#include "experiments/lab/predict/plan_name.h"
#include "experiments/lab/predict/prediction_record.h"
#include "experiments/lab/report/chart.h"
#include "experiments/lab/report/html_page.h"

namespace syncopate::experiments {
namespace {

using prediction::FittedValue;
using prediction::Unknown;

constexpr int kHollow = 7;  // a marker that no curve has: the ring

Chart over_workers(const ScaledJob& job, const std::vector<FittedWay>& ways) {
  Chart chart{.title = "Measured, and predicted from that",
              .x = {.label = "workers", .logarithmic = true},
              .y = {.label = "samples/s", .logarithmic = true},
              .series = {},
              .note = "Bars: nine of ten cases. Rings: what was measured."};
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const int colour = static_cast<int>(i);
    ChartSeries predicted{.name = ways[i].name, .points = {}, .colour = colour, .marker = colour};
    ChartSeries measured{
        .name = ways[i].name + ", measured", .points = {}, .joined = false, .colour = colour, .marker = kHollow};
    for (const FittedSize& size : ways[i].sizes) {
      const auto rate = [&](double step) { return job.samples_per_second(size.workers, step); };
      const double workers = size.workers;
      predicted.points.push_back(
          {.x = workers, .y = rate(size.step.median), .low = rate(size.step.high), .high = rate(size.step.low)});
      if (size.measured) measured.points.push_back({.x = workers, .y = *size.measured});
    }
    chart.series.push_back(std::move(predicted));
    chart.series.push_back(std::move(measured));
  }
  return chart;
}

nlohmann::ordered_json value_json(const FittedValue& value) {
  return {{"median", value.median}, {"low", value.low}, {"high", value.high}};
}

nlohmann::ordered_json fit_json(const FittedWay& way) {
  return {{"exchange", way.name},
          {"measured_workers", way.measured},
          {"step_alone_seconds", value_json(way.fit.value(Unknown::kAlone))},
          {"fixed", value_json(way.fit.value(Unknown::kFixed))},
          {"jitter", value_json(way.fit.value(Unknown::kJitter))},
          {"link_share", value_json(way.fit.value(Unknown::kLinkShare))},
          {"hidden", value_json(way.fit.value(Unknown::kHidden))},
          {"decline", value_json(way.fit.value(Unknown::kDecline))}};
}

}  // namespace

std::vector<FlatRow> fitted_flat_rows(const ScaledJob& job, const std::vector<FittedWay>& ways) {
  std::vector<FlatRow> all;
  for (const FittedWay& way : ways) {
    const ScaledJob fitted = way.fitted_job(job);
    for (const FittedSize& size : way.sizes) {
      FlatRow row = {{"workers", size.workers}, {"exchange", way.name_of(job, size)}};
      add_figures(figures_of(fitted, size.workers, size.plan, size.step.median), row);
      row["samples_per_second_low"] = job.samples_per_second(size.workers, size.step.high);
      row["samples_per_second_high"] = job.samples_per_second(size.workers, size.step.low);
      row["measured_samples_per_second"] = nullptr;
      if (size.measured) row["measured_samples_per_second"] = *size.measured;
      all.push_back(std::move(row));
    }
  }
  return all;
}

std::string fitted_json(const ScaledJob& job, const MeasuredRuns& measured, const std::vector<FittedWay>& ways,
                        const std::string& command) {
  nlohmann::ordered_json fits = nlohmann::ordered_json::array();
  for (const FittedWay& way : ways) fits.push_back(fit_json(way));
  const nlohmann::ordered_json json = {{"command", command},
                                       {"job", job_json(job)},
                                       {"fits", fits},
                                       {"left_out", measured.left_out},
                                       {"rows", fitted_flat_rows(job, ways)}};
  return json.dump(1) + "\n";
}

std::string fitted_html(const ScaledJob& job, const MeasuredRuns& measured, const std::vector<FittedWay>& ways,
                        const std::string& command) {
  const std::string body = opening_html(title_of(job, kFitted), command) + html_charts({over_workers(job, ways)}) +
                           html_table(fitted_rows(job, ways), "Measured and predicted") +
                           html_list(fitted_sentences(job, measured, ways));
  return html_page(fmt::format("{} at other sizes", job.profile.model), body);
}

}  // namespace syncopate::experiments
