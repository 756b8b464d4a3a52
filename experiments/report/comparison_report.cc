#include "experiments/report/comparison_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <span>

#include "common/whole_file.h"
#include "experiments/report/chart.h"
#include "experiments/report/comparison_files.h"
#include "experiments/report/comparison_text.h"
#include "experiments/report/format.h"
#include "experiments/report/html_text.h"
#include "experiments/report/statistics.h"
#include "experiments/report/text_table.h"

namespace syncopate::experiments {
namespace {

using Row = std::vector<std::string>;

// Of a row, what came to its end.
struct Shown {
  std::string label, mode, value;
  std::int64_t parameters = 0;
  std::vector<RunReport> reports;
  std::vector<std::vector<EvalRecord>> evals;
};

std::vector<Shown> shown(const ComparisonReport& report) {
  std::vector<Shown> all;
  for (const ComparedRow& row : report.rows) {
    Shown one{
        .label = row.label, .mode = row.mode, .value = "", .parameters = row.parameters, .reports = {}, .evals = {}};
    for (const auto& [name, value] : row.values) one.value += (one.value.empty() ? "" : " ") + value;
    for (std::size_t round = 0; round < row.rounds.size(); ++round) {
      if (!row.rounds[round]) continue;
      one.reports.push_back(*row.rounds[round]);
      one.evals.push_back(row.evals[round]);
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::string throughput_cell(const Spread& spread, std::size_t repeats) {
  if (repeats == 1) return format_count(spread.median);
  return fmt::format("{} [{} .. {}]", format_count(spread.median), format_count(spread.least),
                     format_count(spread.most));
}

double megabytes_a_step(const RunReport& report) {
  return (report.bytes_out_per_step + report.bytes_in_per_step) / 1e6;
}

double megabytes_of_memory(const RunReport& report) { return static_cast<double>(report.memory.all) / 1e6; }

// What all rows are shown beside.
struct Columns {
  double first = 0;    // throughput of the first row
  bool codec = false;  // whether any run has compressed
  std::string quality = "accuracy";
};

Columns columns_of(std::span<const Shown> results) {
  Columns columns{.first = results.empty() ? 0 : median(throughputs(results.front().reports))};
  for (const Shown& result : results) {
    for (const RunReport& report : result.reports) {
      columns.codec |= report.codec_ms > 0;
      if (report.final_test_accuracy) columns.quality = headline_name(report.final_figures);
    }
  }
  return columns;
}

std::optional<double> quality_of(const RunReport& report) {
  if (!report.final_test_accuracy) return std::nullopt;
  return headline_of(*report.final_test_accuracy, report.final_figures);
}

// samples/s, ratio, ms/step, wait %, MB/step, codec ms, staleness
Row measured_cells(std::span<const RunReport> reports, bool is_first, const Columns& columns) {
  const std::vector<double> values = throughputs(reports);
  if (values.empty()) return Row(columns.codec ? 7 : 6, "-");
  const Spread spread = spread_of(values);
  const RunReport& report = middle_report(reports);
  const StepSplit& split = report.split_ms;
  Row row = {throughput_cell(spread, values.size()),
             is_first            ? "1"
             : columns.first > 0 ? fmt::format("{:.2f}x", spread.median / columns.first)
                                 : "-",
             format_ms(report.step_ms_median),
             fmt::format("{:.1f}", split.step > 0 ? 100 * split.exposed_wait / split.step : 0.0),
             fmt::format("{:.3f}", megabytes_a_step(report))};
  if (columns.codec) row.push_back(format_ms(report.codec_ms));
  row.push_back(fmt::format("{:.2f}", report.staleness_mean));
  return row;
}

Row comparison_row(const Shown& result, bool is_first, const Columns& columns) {
  Row row = {result.label};
  for (std::string& cell : measured_cells(result.reports, is_first, columns)) row.push_back(std::move(cell));
  const RunReport* report = result.reports.empty() ? nullptr : &middle_report(result.reports);
  const std::optional<double> quality = report != nullptr ? quality_of(*report) : std::nullopt;
  const bool reached = report != nullptr && report->seconds_to_target.has_value();
  row.push_back(report != nullptr ? fmt::format("{:.0f}", megabytes_of_memory(*report)) : "-");
  row.push_back(quality ? fmt::format("{:.4f}", *quality) : "-");
  row.push_back(reached ? format_duration(*report->seconds_to_target) : "-");
  return row;
}

std::vector<Row> comparison_rows(std::span<const Shown> results) {
  const Columns columns = columns_of(results);
  Row head = {"mode", "samples/s", "ratio", "ms/step", "wait %", "MB/step"};
  if (columns.codec) head.emplace_back("codec ms");
  head.insert(head.end(), {"staleness", "MB memory", columns.quality, "to target"});
  std::vector<Row> rows = {std::move(head)};
  for (const Shown& result : results) {
    rows.push_back(comparison_row(result, &result == &results.front(), columns));
  }
  return rows;
}

// "" for none, as pandas reads it.
template <typename T>
std::string cell(const std::optional<T>& value) {
  return value ? fmt::format("{:.6g}", *value) : std::string();
}

std::string csv_row(const Shown& result, std::size_t repeat) {
  const RunReport& report = result.reports[repeat];
  const auto bits = [&](double bytes) {
    return result.parameters > 0 ? 8 * bytes / static_cast<double>(result.parameters) : 0.0;
  };
  const auto number = [](double value) { return fmt::format("{:.6g}", value); };
  const auto text = [](const std::string& value) { return fmt::format("\"{}\"", value); };
  const std::string cells[] = {text(result.label),
                               text(result.mode),
                               text(result.value),
                               std::to_string(repeat),
                               cell(report.samples_per_second),
                               number(report.step_ms_median),
                               number(report.split_ms.exposed_wait),
                               number(report.communication_ms),
                               number(report.codec_ms),
                               fmt::format("{:.0f}", report.bytes_out_per_step),
                               fmt::format("{:.0f}", report.bytes_in_per_step),
                               number(bits(report.bytes_out_per_step)),
                               number(bits(report.bytes_in_per_step)),
                               number(report.staleness_mean),
                               std::to_string(report.memory.worker),
                               std::to_string(report.memory.server),
                               std::to_string(report.memory.all),
                               cell(report.final_test_accuracy),
                               cell(quality_of(report)),
                               cell(report.final_test_loss),
                               cell(report.final_train_loss),
                               number(report.training_seconds),
                               cell(report.seconds_to_target),
                               report.samples_to_target ? std::to_string(*report.samples_to_target) : ""};
  return fmt::format("{}\n", fmt::join(cells, ","));
}

// The repeat that stands for all.
std::size_t middle_of(const Shown& result) {
  return static_cast<std::size_t>(&middle_report(result.reports) - result.reports.data());
}

Chart quality_over_time(std::span<const Shown> results) {
  Chart chart{.title = "Quality on the test set over training time",
              .x = {"seconds of training"},
              .y = {"test " + columns_of(results).quality},
              .series = {}};
  for (const Shown& result : results) {
    ChartSeries series{result.label, {}};
    if (!result.reports.empty() && middle_of(result) < result.evals.size()) {
      for (const EvalRecord& eval : result.evals[middle_of(result)]) {
        series.points.push_back({eval.training_seconds, headline_of(eval.accuracy, eval.figures)});
      }
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

using Figure = std::function<std::optional<double>(const RunReport&)>;

// What travelled against `figure`, a mark for each result that has it, labelled with its value of the option.
Chart against_bytes(std::span<const Shown> results, const std::string& title, const std::string& label,
                    const Figure& figure) {
  Chart chart{.title = title, .x = {"MB a step and worker, out and in", true}, .y = {label}, .series = {}};
  for (const Shown& result : results) {
    if (result.reports.empty()) continue;
    const RunReport& report = middle_report(result.reports);
    const std::optional<double> value = figure(report);
    if (!value) continue;
    if (chart.series.empty() || chart.series.back().name != result.mode) {
      chart.series.push_back({.name = result.mode, .points = {}, .joined = false});
    }
    chart.series.back().points.push_back({megabytes_a_step(report), *value, result.value});
  }
  return chart;
}

std::optional<double> number_in(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == '\0' ? std::optional(value) : std::nullopt;
}

// A line for each mode over the values of the option; no series unless they are two numbers or more.
Chart over_option(std::span<const Shown> results, const std::string& option, const ChartAxis& axis,
                  const Figure& figure) {
  Chart chart{.title = fmt::format("{} over {}", axis.label, option), .x = {option, true}, .y = axis, .series = {}};
  bool is_line = false;
  for (const Shown& result : results) {
    const std::optional<double> value = number_in(result.value);
    if (!value || *value <= 0 || result.reports.empty()) continue;
    if (chart.series.empty() || chart.series.back().name != result.mode) chart.series.push_back({result.mode, {}});
    if (const std::optional<double> y = figure(middle_report(result.reports))) {
      chart.series.back().points.push_back({*value, *y});
    }
    is_line |= chart.series.back().points.size() > 1;
  }
  if (!is_line) chart.series.clear();
  return chart;
}

std::vector<Chart> charts_of(std::span<const Shown> results, const std::string& option) {
  const Figure throughput = [](const RunReport& report) { return report.samples_per_second; };
  std::vector<Chart> charts = {quality_over_time(results)};
  const Chart to_target =
      against_bytes(results, "What travels, and when the target is reached", "seconds to the target",
                    [](const RunReport& report) { return report.seconds_to_target; });
  if (!to_target.series.empty()) charts.push_back(to_target);
  charts.push_back(against_bytes(results, "What travels, and what is learnt",
                                 "final test " + columns_of(results).quality, quality_of));
  charts.push_back(against_bytes(results, "What travels, and how fast", "samples/s", throughput));
  for (const auto& [axis, figure] :
       std::vector<std::pair<ChartAxis, Figure>>{{{"samples/s"}, throughput},
                                                 {{"MB a step", true}, megabytes_a_step},
                                                 {{"MB of memory", true}, megabytes_of_memory}}) {
    const Chart chart = over_option(results, option, axis, figure);
    if (!chart.series.empty()) charts.push_back(chart);
  }
  return charts;
}

}  // namespace

std::vector<RunReport> finished_rounds(const ComparedRow& row) {
  std::vector<RunReport> reports;
  for (const std::optional<RunReport>& round : row.rounds) {
    if (round) reports.push_back(*round);
  }
  return reports;
}

std::string comparison_text(const ComparisonReport& report) { return text_table(comparison_rows(shown(report))); }

std::string comparison_csv(const ComparisonReport& report) {
  std::string csv =
      "label,mode,value,repeat,samples_per_second,step_ms_median,exposed_wait_ms,communication_ms,codec_ms,bytes_out_"
      "per_step,"
      "bytes_in_per_step,bits_per_parameter_out,bits_per_parameter_in,staleness_mean,worker_memory_bytes,"
      "server_memory_bytes,memory_bytes,final_test_accuracy,final_test_headline,final_test_loss,final_train_loss,"
      "training_seconds,"
      "seconds_to_target,samples_to_target\n";
  for (const Shown& result : shown(report)) {
    for (std::size_t repeat = 0; repeat < result.reports.size(); ++repeat) csv += csv_row(result, repeat);
  }
  return csv;
}

std::string comparison_html(const ComparisonReport& report) {
  const std::vector<Shown> results = shown(report);
  std::string table;
  for (const Row& row : comparison_rows(results)) {
    const char* const tag = table.empty() ? "th" : "td";
    table += "<tr>";
    for (const std::string& text : row) table += fmt::format("<{0}>{1}</{0}>", tag, html_text(text));
    table += "</tr>\n";
  }
  std::string charts;
  for (const Chart& chart : charts_of(results, report.varied.empty() ? "" : report.varied.front()))
    charts += svg_of(chart) + "<br>\n";
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n"
      "<style>body {{ font-family: sans-serif; margin: 2em; }} table {{ border-collapse: collapse; }}\n"
      "th, td {{ padding: 0.2em 0.8em; text-align: right; border-bottom: 1px solid #ddd; }}\n"
      "th:first-child, td:first-child {{ text-align: left; }}</style></head>\n"
      "<body><h1>{0}</h1>\n<table>\n{1}</table>\n{2}</body></html>\n",
      html_text(report.job), table, charts);
}

Status write_comparison(const ComparisonReport& report, const std::string& folder) {
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(folder + "/comparison.csv", comparison_csv(report)));
  return write_whole_file(folder + "/comparison.html", comparison_html(report));
}

}  // namespace syncopate::experiments
