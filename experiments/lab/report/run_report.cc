#include "experiments/lab/report/run_report.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "experiments/lab/report/goodput.h"
#include "experiments/lab/report/kept_steps.h"
#include "experiments/lab/report/statistics.h"

namespace syncopate::experiments {
namespace {

// Pointers, since a long run has too many records to copy.
using Steps = std::vector<const StepRecord*>;

Steps steps_of(const std::vector<StepOfWorker>& all) {
  Steps steps;
  for (const StepOfWorker& each : all) steps.push_back(each.step);
  return steps;
}

template <typename Value>
std::vector<double> each(const Steps& steps, Value&& value) {
  std::vector<double> values;
  values.reserve(steps.size());
  for (const StepRecord* step : steps) values.push_back(static_cast<double>(value(*step)));
  return values;
}

StepSplit split_of(const Steps& steps) {
  const auto mean_ms = [&](auto part) {
    return mean(each(steps, [&](const StepRecord& step) { return milliseconds(part(step)); }));
  };
  StepSplit split;
  split.step = mean_ms([](const StepRecord& s) { return s.total; });
  split.data = mean_ms([](const StepRecord& s) { return s.data; });
  split.forward = mean_ms([](const StepRecord& s) { return s.forward; });
  split.backward = mean_ms([](const StepRecord& s) { return s.backward; });
  split.straggle = mean_ms([](const StepRecord& s) { return s.straggle; });
  split.exposed_wait = mean_ms([](const StepRecord& s) { return s.sync.exposed_wait; });
  split.optimizer = mean_ms([](const StepRecord& s) { return s.sync.optimizer; });
  split.other = mean_ms([](const StepRecord& s) { return s.total - parts_of(s); });
  return split;
}

double used_samples_of(const StepRecord& step) { return static_cast<double>(step.samples) * used_part(step); }

// Returns the part of a step, from 0 to 1, that lies in the window.
double part_within(const StepRecord& step, const TimeWindow& window) {
  const Duration inside = std::min(step.end, window.end) - std::max(step.end - step.total, window.begin);
  return step.total > Duration::zero() ? std::max(0.0, seconds(inside) / seconds(step.total)) : 0;
}

// A step that the window cuts counts with its part: in a short run whose workers go in step, whole steps only would
// leave out one of each worker's.
SteadyWindow window_figures(std::span<const WorkerSteps> workers, const TimeWindow& window, std::size_t steps) {
  double samples = 0;
  for (const WorkerSteps& worker : workers) {
    for (const StepRecord& step : worker.steps) samples += used_samples_of(step) * part_within(step, window);
  }
  const double length = seconds(window.end - window.begin);
  return {.seconds = length, .samples_per_second = samples / length, .steps = static_cast<std::int64_t>(steps)};
}

void report_steps(const Steps& steps, RunReport& report) {
  for (const StepRecord* step : steps) report.staleness_max = std::max(report.staleness_max, step->sync.staleness_max);
  const std::vector<double> totals = each(steps, [](const StepRecord& s) { return milliseconds(s.total); });
  report.step_ms_median = median(totals);
  report.step_ms_p95 = percentile(totals, 0.95);
  report.split_ms = split_of(steps);
  report.communication_ms = mean(each(steps, [](const StepRecord& s) { return milliseconds(s.sync.communication); }));
  report.codec_ms = mean(each(steps, [](const StepRecord& s) { return milliseconds(s.sync.codec); }));
  report.copy_ms = mean(each(steps, [](const StepRecord& s) { return milliseconds(s.sync.copy); }));
  report.launch_ms = mean(each(steps, [](const StepRecord& s) { return milliseconds(s.launch); }));
  report.hidden_communication_ms = mean(each(steps, [](const StepRecord& s) {
    return milliseconds(std::max(Duration::zero(), s.sync.communication - s.sync.exposed_wait));
  }));
  report.bytes_out_per_step = mean(each(steps, [](const StepRecord& s) { return s.sync.bytes_out; }));
  report.bytes_in_per_step = mean(each(steps, [](const StepRecord& s) { return s.sync.bytes_in; }));
  const std::vector<double> staleness = each(steps, [](const StepRecord& s) { return s.sync.staleness_mean; });
  report.staleness_mean = mean(staleness);
  report.staleness_p95 = percentile(staleness, 0.95);
  report.staleness_bins = staleness_histogram(steps);
}

void report_stragglers(std::span<const WorkerSteps> workers, std::int64_t warmup_steps, RunReport& report) {
  for (const WorkerSteps& worker : workers) {
    Steps steps;
    const std::int64_t warm = warm_from(worker, warmup_steps);
    for (const StepRecord& step : worker.steps) {
      if (step.step >= warm) steps.push_back(&step);
    }
    const std::vector<double> delays = each(steps, [](const StepRecord& s) { return milliseconds(s.straggle); });
    if (std::ranges::all_of(delays, [](double delay) { return delay == 0; })) continue;
    const double compute = mean(each(steps, [](const auto& s) { return milliseconds(s.forward + s.backward); }));
    const double delay = mean(delays);
    report.stragglers.push_back({.worker = worker.rank,
                                 .delay_ms_mean = delay,
                                 .delay_ms_max = std::ranges::max(delays),
                                 .slowdown = compute > 0 ? (compute + delay) / compute : 1});
  }
}

constexpr std::size_t kLastPart = 10;  // of a worker's steps, the last tenth says what its training loss has come to

void report_whole(std::span<const WorkerSteps> workers, RunReport& report) {
  TimePoint first = TimePoint::max(), last = TimePoint::min();
  double first_loss = 0, first_samples = 0, last_loss = 0, last_samples = 0;
  double dropped = 0, used = 0;
  for (const WorkerSteps& worker : workers) {
    for (const StepRecord& step : worker.steps) {
      first = std::min(first, step.end - step.total);
      last = std::max(last, step.end);
      report.total_steps += 1;
      report.total_samples += step.samples;
      dropped += step.sync.dropped;
    }
    for (const StepRecord* step : kept_steps(worker.steps)) used += used_samples_of(*step);
    if (!worker.steps.empty()) {
      const StepRecord& step = worker.steps.front();
      first_loss += step.loss * static_cast<double>(step.samples);
      first_samples += static_cast<double>(step.samples);
    }
    if (worker.lost) report.lost_workers.push_back(worker.rank);
    if (worker.lost || worker.steps.empty()) continue;
    // The last batch alone may be what was left of an epoch.
    for (const StepRecord& step : std::span(worker.steps).last((worker.steps.size() + kLastPart - 1) / kLastPart)) {
      last_loss += step.loss * static_cast<double>(step.samples);
      last_samples += static_cast<double>(step.samples);
    }
  }
  if (report.total_steps > 0) {
    report.training_seconds = seconds(last - first);
    report.dropped = dropped / static_cast<double>(report.total_steps);
  }
  report.used_samples = std::llround(used);
  report.goodput = goodput(workers, report.training_seconds);
  if (report.training_seconds > 0) {
    report.samples_per_second = static_cast<double>(report.used_samples) / report.training_seconds;
  }
  if (first_samples > 0) report.first_train_loss = first_loss / first_samples;
  if (last_samples > 0) report.final_train_loss = last_loss / last_samples;
}

// All workers skip the same steps.
void report_loss_scale(std::span<const WorkerSteps> workers, RunReport& report) {
  if (workers.empty() || workers.front().steps.empty()) return;
  const auto& steps = workers.front().steps;
  if (steps.back().sync.loss_scale == 0) return;
  report.loss_scale = steps.back().sync.loss_scale;
  report.skipped_steps = 0;
  for (const StepRecord& step : steps) *report.skipped_steps += step.sync.skipped;
}

void report_evals(std::span<const EvalRecord> evals, const ReportOptions& options, RunReport& report) {
  if (evals.empty()) return;
  if (!std::isnan(evals.back().accuracy)) report.final_test_accuracy = evals.back().accuracy;
  report.final_test_loss = evals.back().loss;
  report.final_figures = evals.back().figures;
  report.final_validation = evals.back().validation;
  if (options.target_accuracy <= 0) return;
  const std::optional<TargetCrossing> crossing = target_crossing(evals, options.target_accuracy, options.is_resumed);
  if (!crossing) return;
  report.samples_to_target = std::llround(crossing->samples);
  if (!options.knows_time) return;
  report.seconds_to_target = crossing->seconds;
  report.seconds_to_target_resolution = crossing->resolution_seconds;
}

double target_figure(const EvalRecord& eval) { return target_figure_of(eval.accuracy, eval.figures, eval.validation); }

}  // namespace

std::optional<double> final_headline(const RunReport& report) {
  if (!report.final_test_accuracy && !report.final_figures.r2) return std::nullopt;
  return headline_of(report.final_test_accuracy.value_or(0), report.final_figures);
}

RunReport make_report(std::span<const WorkerSteps> workers, std::span<const EvalRecord> evals,
                      const ReportOptions& options) {
  RunReport report;
  report_whole(workers, report);
  report_loss_scale(workers, report);
  report_stragglers(workers, options.warmup_steps, report);
  if (options.is_resumed) report.first_train_loss.reset();
  report_evals(evals, options, report);
  if (const std::optional<TimeWindow> window = steady_window(workers, options.warmup_steps)) {
    const Steps inside = steps_of(steps_within(workers, *window, options.warmup_steps));
    report.window = window_figures(workers, *window, inside.size());
    report_steps(inside, report);
  } else {
    report_steps(steps_of(all_steps(workers)), report);
  }
  return report;
}

std::optional<double> hidden_part(const RunReport& report) {
  if (report.communication_ms <= 0) return std::nullopt;
  return report.hidden_communication_ms / report.communication_ms;
}

MemoryFigures memory_figures(const std::map<std::string, std::int64_t>& peaks) {
  MemoryFigures memory;
  for (const auto& [name, bytes] : peaks) {
    const bool is_worker = name.starts_with("worker "), is_server = name.starts_with("server ");
    if (is_worker) memory.worker = std::max(memory.worker, bytes);
    if (is_server) memory.server = std::max(memory.server, bytes);
    if (is_worker || is_server) memory.all += bytes;
  }
  return memory;
}

std::vector<double> throughputs(std::span<const RunReport> reports) {
  std::vector<double> values;
  for (const RunReport& report : reports) {
    if (report.samples_per_second) values.push_back(*report.samples_per_second);
  }
  return values;
}

const RunReport& middle_report(std::span<const RunReport> reports) {
  assert(!reports.empty());
  std::vector<const RunReport*> ascending;
  for (const RunReport& report : reports) ascending.push_back(&report);
  std::ranges::stable_sort(ascending, {}, [](const RunReport* report) { return report->samples_per_second; });
  return *ascending[(ascending.size() - 1) / 2];
}

RecoveryTimes recovery_after(TimePoint fault, std::span<const WorkerSteps> workers) {
  RecoveryTimes times;
  for (const WorkerSteps& worker : workers) {
    const auto begun_after = [&](const StepRecord& step) { return step.end - step.total >= fault; };
    const auto found = std::ranges::find_if(worker.steps, begun_after);
    if (found == worker.steps.end()) continue;
    const Duration after = found->end - fault;
    times.first = std::min(times.first.value_or(after), after);
    times.all = std::max(times.all.value_or(after), after);
  }
  return times;
}

std::optional<TargetCrossing> target_crossing(std::span<const EvalRecord> evals, double target, bool is_resumed) {
  std::vector<const EvalRecord*> ascending;
  for (const EvalRecord& eval : evals) ascending.push_back(&eval);
  std::ranges::stable_sort(ascending, {}, &EvalRecord::training_seconds);
  const auto reached =
      std::ranges::find_if(ascending, [&](const auto* eval) { return target_figure(*eval) >= target; });
  if (reached == ascending.end() || (is_resumed && reached == ascending.begin())) return std::nullopt;
  const EvalRecord& after = **reached;
  const auto samples_after = static_cast<double>(after.samples_seen);
  if (reached == ascending.begin())
    return TargetCrossing{after.training_seconds, samples_after, after.training_seconds, samples_after};
  const EvalRecord& before = **(reached - 1);
  const auto samples_before = static_cast<double>(before.samples_seen);
  const double part = (target - target_figure(before)) / (target_figure(after) - target_figure(before));
  TargetCrossing crossing{.resolution_seconds = after.training_seconds - before.training_seconds,
                          .resolution_samples = samples_after - samples_before};
  crossing.seconds = before.training_seconds + part * crossing.resolution_seconds;
  crossing.samples = samples_before + part * crossing.resolution_samples;
  return crossing;
}

}  // namespace syncopate::experiments
