#include "experiments/lab/run_page/step_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "common/text/format.h"
#include "experiments/lab/report/statistics.h"

namespace syncopate::experiments {
namespace {

constexpr int kMostWorkersShown = 32;
constexpr double kMegabyte = 1e6;

// A part of a step, in the order in which a step has them. Its colour is the same in every chart.
struct StepPart {
  const char* name;
  Duration (*of)(const StepRecord& step);
  int colour;
};
constexpr StepPart kStepParts[] = {
    {"data", [](const StepRecord& step) { return step.data; }, 4},
    {"forward", [](const StepRecord& step) { return step.forward; }, 0},
    {"backward", [](const StepRecord& step) { return step.backward; }, 5},
    {"straggle", [](const StepRecord& step) { return step.straggle; }, 7},
    {"exposed wait", [](const StepRecord& step) { return step.sync.exposed_wait; }, 1},
    {"optimizer", [](const StepRecord& step) { return step.sync.optimizer; }, 2},
    {"other", [](const StepRecord& step) { return std::max(Duration::zero(), step.total - parts_of(step)); }, 8}};

std::string worker_name(int worker) { return fmt::format("worker {}", worker); }

// The first workers, which are shown.
std::vector<std::string> worker_rows(const ReportedRun& run) {
  std::vector<std::string> rows;
  for (int worker = 0; worker < std::min(run.explained.pace.workers, kMostWorkersShown); ++worker) {
    rows.push_back(worker_name(worker));
  }
  return rows;
}

std::string note_of_workers(const ReportedRun& run) {
  const int workers = run.explained.pace.workers;
  return workers > kMostWorkersShown ? fmt::format("The first {} of {} workers.", kMostWorkersShown, workers) : "";
}

// The steps of the workers that are shown, of which each began with a warm-up.
std::vector<WorkerSteps> shown_workers(const ReportedRun& run) {
  std::vector<WorkerSteps> workers;
  for (const auto& [worker, steps] : run.recorded.steps.of_workers) {
    if (worker < kMostWorkersShown) workers.push_back({.rank = worker, .steps = steps});
  }
  return workers;
}

std::string join_notes(const std::string& first, const std::string& second) {
  return first + (first.empty() || second.empty() ? "" : " ") + second;
}

}  // namespace

BarChart split_chart(const ReportedRun& run) {
  BarChart chart{.title = "A mean step of each worker",
                 .axis = {.label = run.time_label("ms"), .from_zero = true},
                 .rows = worker_rows(run),
                 .series = {},
                 .note = note_of_workers(run)};
  std::map<int, double> steps, reached;
  std::map<std::pair<const StepPart*, int>, double> sums;
  for (const auto& [worker, step] : steps_within(shown_workers(run), {}, run.explained.pace.warmup_steps)) {
    ++steps[worker];
    for (const StepPart& part : kStepParts) sums[{&part, worker}] += milliseconds(part.of(*step));
  }
  for (const StepPart& part : kStepParts) {
    BarSeries series{.name = part.name, .bars = {}, .colour = part.colour};
    double all = 0;
    for (const auto& [worker, count] : steps) {
      const double ms = sums[{&part, worker}] / count;
      all += ms;
      series.bars.push_back({worker_name(worker), reached[worker], reached[worker] + ms});
      reached[worker] += ms;
    }
    if (all > 0) chart.series.push_back(std::move(series));
  }
  return chart;
}

BarChart waterfall_chart(const ReportedRun& run) {
  constexpr double kShownShare = 0.0005;  // of a step, as `why` shows
  const Waterfall& waterfall = run.explained.waterfall;
  BarChart chart{.title = "Where the time of a step went",
                 .axis = {.label = run.time_label("ms of a mean step"), .from_zero = true},
                 .rows = {"ideal"},
                 .series = {}};
  BarSeries ends{.name = "ideal and measured", .bars = {}, .colour = 0};
  BarSeries lost{.name = "lost", .bars = {}, .colour = 1}, gained{.name = "won back", .bars = {}, .colour = 2};
  ends.bars.push_back({"ideal", 0, waterfall.ideal_ms, format_ms(waterfall.ideal_ms)});
  double reached = waterfall.ideal_ms;
  for (const Part& part : waterfall.parts) {
    const double from = reached;
    reached += part.ms;
    if (std::abs(part.ms) < kShownShare * waterfall.measured_ms) continue;
    chart.rows.emplace_back(name_of(part.kind));
    (part.ms < 0 ? gained : lost).bars.push_back({name_of(part.kind), from, reached, fmt::format("{:+.3g}", part.ms)});
  }
  chart.rows.emplace_back("measured");
  ends.bars.push_back({"measured", 0, waterfall.measured_ms, format_ms(waterfall.measured_ms)});
  chart.series = {std::move(ends), std::move(lost), std::move(gained)};
  return chart;
}

BarChart staleness_chart(const ReportedRun& run) {
  constexpr std::size_t kMostBins = 16;
  const std::vector<StalenessBin>& bins = run.report().staleness_bins;
  BarChart chart{.title = "How stale gradients were",
                 .axis = {.label = "% of steps", .from_zero = true},
                 .rows = {},
                 .series = {{.name = "steps", .bars = {}, .colour = 0}},
                 .note = "Rows are updates that others made meanwhile, the mean over shards, rounded."};
  double all = 0;
  for (const StalenessBin& bin : bins) all += static_cast<double>(bin.steps);
  if (bins.empty() || all <= 0 || bins.back().staleness == 0) return chart;
  double steps = 0, losses = 0;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    steps += static_cast<double>(bins[i].steps);
    losses += bins[i].loss * static_cast<double>(bins[i].steps);
    const bool is_rest = i + 1 >= kMostBins;
    if (is_rest && i + 1 < bins.size()) continue;
    const bool is_one = i < kMostBins;
    const std::string row = is_one ? fmt::format("{}", bins[i].staleness)
                                   : fmt::format("{} to {}", bins[kMostBins - 1].staleness, bins[i].staleness);
    chart.rows.push_back(row);
    chart.series[0].bars.push_back(
        {row, 0, 100 * steps / all,
         fmt::format("{:.3g} %{}", 100 * steps / all,
                     std::isnan(losses) ? "" : fmt::format(", loss {:.3f}", losses / steps))});
    steps = losses = 0;
  }
  return chart;
}

Chart staleness_loss_chart(const ReportedRun& run) {
  const std::vector<StalenessBin>& bins = run.report().staleness_bins;
  Chart chart{.title = "Loss of batches with stale gradients",
              .x = {.label = "staleness, updates", .from_zero = true},
              .y = {.label = "training loss above that of its epoch"},
              .series = {{.name = "steps", .points = {}, .joined = false, .colour = 0}},
              .note =
                  "Losses fall as training goes on; so each is held against the mean of its epoch. Points of few "
                  "steps vary most."};
  if (bins.empty() || bins.back().staleness == 0) return chart;
  for (const StalenessBin& bin : bins) {
    if (std::isnan(bin.excess_loss)) continue;
    chart.series[0].points.push_back({.x = static_cast<double>(bin.staleness),
                                      .y = bin.excess_loss,
                                      .label = fmt::format("{} step{}", bin.steps, bin.steps == 1 ? "" : "s")});
  }
  return chart;
}

BarChart bytes_chart(const ReportedRun& run) {
  BarChart chart{.title = "What each process sent and received",
                 .axis = {.label = "MB of payload in the run", .from_zero = true},
                 .rows = worker_rows(run),
                 .series = {{.name = "sent", .bars = {}, .colour = 0}, {.name = "received", .bars = {}, .colour = 5}},
                 .note = note_of_workers(run)};
  std::map<int, std::pair<double, double>> workers;
  for (const auto& [worker, steps] : run.recorded.steps.of_workers) {
    for (const StepRecord& step : steps) {
      workers[worker].first += static_cast<double>(step.sync.bytes_out) / kMegabyte;
      workers[worker].second += static_cast<double>(step.sync.bytes_in) / kMegabyte;
    }
  }
  double all = 0;
  const auto add = [&](const std::string& row, double out, double in) {
    chart.series[0].bars.push_back({row, 0, out});
    chart.series[1].bars.push_back({row, out, out + in});
    all += out + in;
  };
  for (const auto& [worker, bytes] : workers) {
    if (worker < kMostWorkersShown) add(worker_name(worker), bytes.first, bytes.second);
  }
  for (const auto& [rank, server] : run.report().servers) {
    if (rank >= kMostWorkersShown) break;
    chart.rows.push_back(fmt::format("server {}", rank));
    add(chart.rows.back(), static_cast<double>(server.bytes_out) / kMegabyte,
        static_cast<double>(server.bytes_in) / kMegabyte);
  }
  if (all <= 0) chart.series.clear();
  return chart;
}

BarChart timeline_chart(const ReportedRun& run) {
  constexpr double kStepsShown = 6;       // of median length
  constexpr std::size_t kMostBars = 500;  // of a part of a step
  BarChart chart{.title = "Some steps of all workers",
                 .axis = {.label = run.time_label("ms since the warm-up of all")},
                 .rows = worker_rows(run),
                 .series = {}};
  TimePoint begin;
  std::vector<double> lengths;
  for (const auto& [worker, steps] : run.recorded.steps.of_workers) {
    const std::int64_t warm = warm_from({.rank = worker, .steps = steps}, run.explained.pace.warmup_steps);
    for (const StepRecord& step : steps) {
      if (step.step < warm) begin = std::max(begin, step.end);
      lengths.push_back(milliseconds(step.total));
    }
  }
  if (lengths.empty()) return chart;
  const double end = kStepsShown * median(lengths);
  for (const StepPart& part : kStepParts)
    chart.series.push_back({.name = part.name, .bars = {}, .colour = part.colour});
  for (const auto& [worker, step] : run.recorded.steps.by_end()) {
    double from = milliseconds(step->end - step->total - begin);
    if (worker >= kMostWorkersShown || from < 0 || milliseconds(step->end - begin) > end) continue;
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
      const double ms = milliseconds(kStepParts[i].of(*step));
      if (ms <= 0 || chart.series[i].bars.size() >= kMostBars) continue;
      chart.series[i].bars.push_back(
          {worker_name(worker), from, from + ms, "", fmt::format("{} ms, step {}", format_ms(ms), step->step)});
      from += ms;
    }
  }
  std::erase_if(chart.series, [](const BarSeries& series) { return series.bars.empty(); });
  chart.note = join_notes("Parts stand in this order within a step, each as one: steps.csv has how long they took.",
                          note_of_workers(run));
  return chart;
}

}  // namespace syncopate::experiments
