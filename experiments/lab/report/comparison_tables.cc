#include "experiments/lab/report/comparison_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "common/text/format.h"
#include "experiments/cluster/control/figure_text.h"
#include "experiments/lab/report/comparison_words.h"
#include "experiments/lab/report/crossover.h"
#include "experiments/lab/report/scaling.h"
#include "experiments/lab/report/statistics.h"
#include "experiments/lab/report/step_parts_table.h"
#include "experiments/lab/report/text_table.h"

namespace syncopate::experiments {
namespace {

using Row = std::vector<std::string>;
using Words = std::function<std::string(double)>;

constexpr const char* kNone = "-";

std::string words(const std::optional<double>& value, const Words& format) { return value ? format(*value) : kNone; }

Words number(const char* format) {
  return [format](double value) { return fmt::format(fmt::runtime(format), value); };
}

std::string percent(double part) { return fmt::format("{:.1f} %", 100 * part); }

std::string duration(double seconds) {
  return seconds < 100 ? fmt::format("{:.3g} s", seconds) : format_duration(seconds);
}

// Returns "41,250 ± 850"; with too few rounds for an interval "41,250 [40,900 .. 41,600]"; with one "41,250".
std::string estimate_words(const Estimate& estimate, const Words& format) {
  if (estimate.count == 0) return kNone;
  if (estimate.interval)
    return fmt::format("{} ± {}", format(estimate.mean), format(estimate.interval->high - estimate.mean));
  if (estimate.count == 1) return format(estimate.mean);
  return fmt::format("{} [{} .. {}]", format(estimate.mean), format(estimate.least), format(estimate.most));
}

// Returns two, or as many digits as show that a claimed difference lies outside its interval.
int digits_of(const Difference& ratio) {
  if (ratio.verdict != Verdict::kHigher && ratio.verdict != Verdict::kLower) return 2;
  const double nearest = std::min(std::abs(ratio.interval->low - 1), std::abs(ratio.interval->high - 1));
  return nearest >= 0.005 ? 2 : nearest >= 0.0005 ? 3 : 4;
}

std::string ratio_words(const Difference& ratio, bool is_first) {
  if (is_first) return "1";
  if (!(ratio.estimate > 0) || (ratio.pairs == 0 && ratio.estimate == 1)) return kNone;
  const int digits = digits_of(ratio);
  if (!ratio.interval) return fmt::format("{:.{}f}x", ratio.estimate, digits);
  return fmt::format("{:.{}f}x [{:.{}f}, {:.{}f}]", ratio.estimate, digits, ratio.interval->low, digits,
                     ratio.interval->high, digits);
}

std::string gain_text(double gain) { return (gain < 0 ? "" : "+") + figure_text(gain); }

std::string gain_words(const Difference& gain, bool is_first, bool present) {
  if (is_first || !present) return kNone;
  if (!gain.interval) return gain_text(gain.estimate);
  return fmt::format("{} ± {}", gain_text(gain.estimate), figure_text(gain.interval->high - gain.estimate));
}

std::string verdict_words(const Difference& difference, bool is_first, const std::string& higher,
                          const std::string& lower) {
  return is_first ? "baseline" : words_of(difference.verdict, higher, lower);
}

std::string mean_of(const ComparisonFigures& figures) {
  if (figures.most_rounds <= 1) return "one round";
  return fmt::format("mean of {} rounds{}{}", figures.most_rounds,
                     figures.fewest_rounds < figures.most_rounds ? " or fewer" : "",
                     figures.most_rounds < kFewestRounds ? " [least .. most]" : " ± 95 % interval");
}

ComparisonTable speed_table(const ComparisonReport& report, const ComparisonFigures& figures) {
  ComparisonTable table{fmt::format("Speed: samples/s of the whole job, {}; ratio to {}{}", mean_of(figures),
                                    report.rows.front().label, report.in_rounds ? " round by round" : ""),
                        {{"mode", "samples/s", "ratio", "verdict", "training", "A/A noise"}},
                        {},
                        {"training"}};
  for (std::size_t i = 0; i < figures.rows.size(); ++i) {
    const RowFigures& row = figures.rows[i];
    table.rows.push_back({report.rows[i].label, estimate_words(row.samples_per_second, format_count),
                          ratio_words(row.speed, i == 0), verdict_words(row.speed, i == 0, "faster", "slower"),
                          row.training_seconds.count > 0 ? duration(row.training_seconds.mean) : kNone,
                          words(row.noise, percent)});
  }
  return table;
}

ComparisonTable step_table(const ComparisonReport& report, const ComparisonFigures& figures) {
  Row head = {"mode", "window samples/s", "ms/step", "wait %", "MB/step"};
  if (figures.has_codec) head.emplace_back("codec ms");
  const bool has_servers =
      std::ranges::any_of(figures.rows, [](const RowFigures& row) { return row.server_megabytes.has_value(); });
  if (has_servers) head.emplace_back("MB/step a server");
  head.insert(head.end(), {"staleness", "MB memory", "goodput"});
  ComparisonTable table{"Steps: one worker's, medians over rounds; memory of all processes",
                        {std::move(head)},
                        {},
                        {"staleness", "goodput"}};
  for (std::size_t i = 0; i < figures.rows.size(); ++i) {
    const RowFigures& row = figures.rows[i];
    Row cells = {report.rows[i].label, words(row.window_samples, format_count), words(row.step_ms, format_ms),
                 words(row.wait, [](double part) { return fmt::format("{:.1f}", 100 * part); }),
                 words(row.megabytes, number("{:.3f}"))};
    if (figures.has_codec) cells.push_back(words(row.codec_ms, format_ms));
    if (has_servers) cells.push_back(words(row.server_megabytes, number("{:.3f}")));
    cells.push_back(words(row.staleness, number("{:.2f}")));
    cells.push_back(words(row.memory_mb, number("{:.0f}")));
    cells.push_back(words(row.goodput, percent));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

ComparisonTable learning_table(const ComparisonReport& report, const ComparisonFigures& figures) {
  ComparisonTable table{
      // What seeds and rates a program of the person's own makes of them, only it knows.
      fmt::format("Learning: {} on the test set at the end, {}{}", figures.quality, mean_of(figures),
                  report.rate_rule.empty() ? "" : fmt::format(", of a seed each; rates {}", report.rate_rule)),
      {{"mode", "rate", "rate a pass", figures.quality, "difference", "verdict", "test loss"}},
      {},
      {"verdict"}};
  for (std::size_t i = 0; i < figures.rows.size(); ++i) {
    const RowFigures& row = figures.rows[i];
    const ComparedRow& of = report.rows[i];
    const bool present = row.quality.count > 0;
    table.rows.push_back(
        {of.label, of.rate > 0 ? fmt::format("{:.4g}", of.rate) : kNone,
         of.rate > 0 && of.updates_a_pass > 0 ? fmt::format("{:.4g}", of.rate * of.updates_a_pass) : kNone,
         estimate_words(row.quality, figure_text), gain_words(row.quality_gain, i == 0, present),
         present ? verdict_words(row.quality_gain, i == 0, "better", "worse") : kNone, words(row.loss, figure_text)});
  }
  return table;
}

bool holds_out(const ComparisonReport& report) {
  return std::ranges::any_of(report.rows, [](const ComparedRow& row) {
    return std::ranges::any_of(row.evals, [](const auto& evals) { return !evals.empty() && evals.back().validation; });
  });
}

ComparisonTable target_table(const ComparisonReport& report, const ComparisonFigures& figures) {
  ComparisonTable table{fmt::format("Target: seconds of training until {}{} is {:.4g}, {}", figures.quality,
                                    holds_out(report) ? " on what is held out" : "", report.target, mean_of(figures)),
                        {{"mode", "reached", "seconds", "resolution", "ratio", "verdict"}},
                        {},
                        {"ratio"}};
  for (std::size_t i = 0; i < figures.rows.size(); ++i) {
    const RowFigures& row = figures.rows[i];
    const bool present = row.to_target.count > 0;
    table.rows.push_back({report.rows[i].label, fmt::format("{} of {}", row.to_target.count, row.rounds),
                          estimate_words(row.to_target, number("{:.3g}")), words(row.resolution, number("{:.2g} s")),
                          present ? ratio_words(row.target_ratio, i == 0) : kNone,
                          present ? verdict_words(row.target_ratio, i == 0, "later", "sooner") : kNone});
  }
  return table;
}

ComparisonTable scaling_table(const ComparisonReport& report, const std::vector<ScalingCurve>& curves) {
  ComparisonTable table{
      "Scaling: samples/s over those of the row in the last column; efficiency: that ratio over the one of the workers",
      {{"mode", "workers", "speed-up", "efficiency", "over"}},
      {},
      {"over"}};
  for (const ScalingCurve& curve : curves) {
    for (const ScalingPoint& point : curve.points) {
      const auto percent = [&](double ratio) { return 100 * ratio * curve.measure_workers / point.workers; };
      const std::optional<Interval>& interval = point.speedup.interval;
      const bool is_measure = point.row == curve.measure;
      table.rows.push_back({report.rows[point.row].label, fmt::format("{:g}", point.workers),
                            ratio_words(point.speedup, is_measure),
                            interval ? fmt::format("{:.1f} % [{:.1f}, {:.1f}]", 100 * point.efficiency,
                                                   percent(interval->low), percent(interval->high))
                                     : fmt::format("{:.1f} %", 100 * point.efficiency),
                            is_measure ? kNone : report.rows[curve.measure].label});
    }
  }
  return table;
}

ComparisonTable crossover_table(const std::vector<Crossover>& crossovers) {
  ComparisonTable table{
      "Crossovers: where the faster of two modes changes, by samples/s; between: the values at which each is ahead",
      {{"option", "of", "faster below", "faster above", "at", "between", "judged"}},
      {},
      {"at"}};
  for (const Crossover& crossover : crossovers) {
    table.rows.push_back({crossover.option, crossover.others.empty() ? kNone : crossover.others, crossover.below,
                          crossover.above, fmt::format("{:.3g}", crossover.at),
                          fmt::format("{:g} and {:g}", crossover.between.low, crossover.between.high),
                          crossover.is_judged ? "yes" : "too few rounds"});
  }
  return table;
}

ComparisonTable cost_table(const ComparisonReport& report, const ComparisonFigures& figures) {
  ComparisonTable table{
      fmt::format("Cost: {:g} for a worker and hour, {:g} for a server", report.prices->worker, report.prices->server),
      {{"mode", "of the training"}}};
  if (report.target > 0) table.rows.front().emplace_back("to the target");
  for (std::size_t i = 0; i < figures.rows.size(); ++i) {
    Row cells = {report.rows[i].label, words(figures.rows[i].cost, number("{:.4g}"))};
    if (report.target > 0) cells.push_back(words(figures.rows[i].cost_to_target, number("{:.4g}")));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// Makes a row for each configuration, and a column for each rate that was tried.
ComparisonTable trial_table(const ComparisonReport& report, const ComparisonFigures& figures) {
  std::map<double, std::size_t> columns;
  for (const RateTrial& trial : report.trials) columns[trial.rate];
  Row head = {"mode"};
  for (auto& [rate, column] : columns) column = head.size(), head.push_back(fmt::format("{:.4g}", rate));
  ComparisonTable table{
      fmt::format("Rates tried: {} on the test set, mean over seeds, by learning rate", figures.quality),
      {std::move(head)}};
  for (const RateTrial& trial : report.trials) {
    const auto same = [&](const Row& row) { return row.front() == trial.label; };
    auto row = std::find_if(table.rows.begin() + 1, table.rows.end(), same);
    if (row == table.rows.end()) {
      Row cells(columns.size() + 1, kNone);
      cells.front() = trial.label;
      row = table.rows.insert(table.rows.end(), std::move(cells));
    }
    const double value = mean(trial.quality);
    (*row)[columns[trial.rate]] = trial.quality.empty()  ? kNone
                                  : std::isfinite(value) ? figure_text(value)
                                                         : "diverged";
  }
  return table;
}

}  // namespace

std::vector<ComparisonTable> comparison_tables(const ComparisonReport& report, const ComparisonFigures& figures) {
  std::vector<ComparisonTable> tables;
  if (!report.trials.empty()) tables.push_back(trial_table(report, figures));
  if (figures.most_rounds == 0) return tables;
  tables.push_back(speed_table(report, figures));
  if (const std::vector<ScalingCurve> curves = scaling_of(report); !curves.empty()) {
    tables.push_back(scaling_table(report, curves));
  }
  if (const std::vector<Crossover> crossovers = crossovers_of(report); !crossovers.empty()) {
    tables.push_back(crossover_table(crossovers));
  }
  tables.push_back(step_table(report, figures));
  if (std::optional<ComparisonTable> table = step_parts_table(report)) tables.push_back(std::move(*table));
  const bool learns = std::ranges::any_of(figures.rows, [](const RowFigures& row) { return row.quality.count > 0; });
  if (learns) tables.push_back(learning_table(report, figures));
  if (report.target > 0) tables.push_back(target_table(report, figures));
  if (report.prices) tables.push_back(cost_table(report, figures));
  return tables;
}

std::string comparison_text(const ComparisonReport& report) {
  const ComparisonFigures figures = figures_of(report);
  std::string text = report.job + "\n\n";
  for (const ComparisonTable& table : comparison_tables(report, figures)) {
    text += table.title + "\n" + text_table(table.rows, table.cuts);
    for (const std::string& sentence : table.sentences) text += sentence + "\n";
    text += "\n";
  }
  for (const std::string& line : caveats(report, figures)) text += line + "\n";
  return text;
}

}  // namespace syncopate::experiments
