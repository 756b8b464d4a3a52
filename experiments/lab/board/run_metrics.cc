#include "experiments/lab/board/run_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace syncopate::experiments {
namespace {

// Returns a label's value as it stands between quotes: backslashes, quotes and line ends are escaped.
std::string label_text(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') text += '\\';
    text += c;
  }
  return text;
}

std::string value_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string head(std::string_view name, std::string_view type, std::string_view help) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

std::string gauge(std::string_view name, std::string_view help, double value) {
  return head(name, "gauge", help) + fmt::format("{} {}\n", name, value_text(value));
}

std::string labels_of(const ResolvedRun& config) {
  return fmt::format("mode=\"{}\",model=\"{}\",dataset=\"{}\",output=\"{}\"", name_of(config.mode),
                     label_text(config.model), label_text(config.dataset), label_text(config.output));
}

}  // namespace

RunMetrics::RunMetrics(const ResolvedRun& config)
    : info_(labels_of(config)), learns_(!is_profile(config)), workers_(static_cast<std::size_t>(config.workers)) {}

void RunMetrics::begin(TimePoint /*origin*/) {
  const std::lock_guard lock(mutex_);
  ++repeats_;
  trains_ = true;
  epoch_ = 0;
  newest_eval_.reset();
  for (WorkerTotals& worker : workers_) worker.trains = true;
}

void RunMetrics::add(int worker, const StepRecord& step) {
  const std::lock_guard lock(mutex_);
  WorkerTotals& totals = workers_[static_cast<std::size_t>(worker)];
  ++totals.steps;
  totals.samples += step.samples;
  totals.bytes_out += step.sync.bytes_out;
  totals.bytes_in += step.sync.bytes_in;
  totals.step_seconds += seconds(step.total);
  totals.wait_seconds += seconds(step.sync.exposed_wait);
  totals.staleness += step.sync.staleness_mean;
  if (step.samples > 0) {
    totals.loss = step.loss;
    totals.accuracy = step.accuracy;
  }
  epoch_ = std::max(epoch_, step.epoch);
}

void RunMetrics::add(const EvalRecord& eval) {
  const std::lock_guard lock(mutex_);
  newest_eval_ = eval;
}

void RunMetrics::worker_lost(int rank) {
  const std::lock_guard lock(mutex_);
  workers_[static_cast<std::size_t>(rank)].trains = false;
  ++losses_;
}

void RunMetrics::worker_joined(int rank) {
  const std::lock_guard lock(mutex_);
  workers_[static_cast<std::size_t>(rank)].trains = true;
}

void RunMetrics::fault_injected() {
  const std::lock_guard lock(mutex_);
  ++faults_;
}

void RunMetrics::not_finite(std::int64_t /*step*/, const std::string& /*line*/) {
  const std::lock_guard lock(mutex_);
  ++not_finite_;
}

Status RunMetrics::end() {
  const std::lock_guard lock(mutex_);
  trains_ = false;
  for (WorkerTotals& worker : workers_) worker.trains = false;
  return {};
}

std::string RunMetrics::text() const {
  const std::lock_guard lock(mutex_);
  std::int64_t samples = 0;
  for (const WorkerTotals& worker : workers_) samples += worker.samples;
  return head("syncopate_run_info", "gauge", "What runs; always 1.") +
         fmt::format("syncopate_run_info{{{}}} 1\n", info_) +
         gauge("syncopate_training", "Whether training has begun and is not over.", trains_ ? 1 : 0) +
         gauge("syncopate_repeat", "Repeat that runs, from 1; 0 before the first.", static_cast<double>(repeats_)) +
         gauge("syncopate_epoch", "Epoch that the furthest worker trains, from 0.", static_cast<double>(epoch_)) +
         head("syncopate_samples_total", "counter", "Samples that all workers have trained.") +
         fmt::format("syncopate_samples_total {}\n", samples) +
         head("syncopate_worker_losses_total", "counter", "Workers that were lost while others went on.") +
         fmt::format("syncopate_worker_losses_total {}\n", losses_) +
         head("syncopate_faults_total", "counter", "Faults of --fault that were injected.") +
         fmt::format("syncopate_faults_total {}\n", faults_) +
         head("syncopate_not_finite_total", "counter", "Repeats in which something was NaN or infinite.") +
         fmt::format("syncopate_not_finite_total {}\n", not_finite_) + text_of_workers() + text_of_evaluation();
}

std::string RunMetrics::text_of_workers() const {
  std::string text;
  const auto of_each = [&](std::string_view name, std::string_view type, std::string_view help, auto&& lines) {
    text += head(name, type, help);
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) text += lines(rank, workers_[rank]);
  };
  const auto one = [](std::string_view name, std::size_t rank, auto value) {
    return fmt::format("{}{{worker=\"{}\"}} {}\n", name, rank, value_text(static_cast<double>(value)));
  };
  of_each("syncopate_worker_up", "gauge", "Whether the worker takes part in the training.",
          [&](std::size_t rank, const WorkerTotals& w) { return one("syncopate_worker_up", rank, w.trains ? 1 : 0); });
  of_each("syncopate_steps_total", "counter", "Steps of the worker.",
          [&](std::size_t rank, const WorkerTotals& w) { return one("syncopate_steps_total", rank, w.steps); });
  of_each("syncopate_step_seconds", "summary", "Length of the worker's steps.",
          [&](std::size_t rank, const WorkerTotals& w) {
            return one("syncopate_step_seconds_sum", rank, w.step_seconds) +
                   one("syncopate_step_seconds_count", rank, w.steps);
          });
  of_each("syncopate_wait_seconds_total", "counter", "Time for which the worker's compute thread waited for others.",
          [&](std::size_t rank, const WorkerTotals& w) {
            return one("syncopate_wait_seconds_total", rank, w.wait_seconds);
          });
  of_each("syncopate_staleness_updates", "summary", "Updates by which the gradients of the worker's steps were stale.",
          [&](std::size_t rank, const WorkerTotals& w) {
            return one("syncopate_staleness_updates_sum", rank, w.staleness) +
                   one("syncopate_staleness_updates_count", rank, w.steps);
          });
  of_each("syncopate_bytes_total", "counter", "Payload that the worker has sent and received.",
          [&](std::size_t rank, const WorkerTotals& w) {
            return fmt::format(
                "syncopate_bytes_total{{worker=\"{0}\",direction=\"out\"}} {1}\n"
                "syncopate_bytes_total{{worker=\"{0}\",direction=\"in\"}} {2}\n",
                rank, w.bytes_out, w.bytes_in);
          });
  if (!learns_) return text;
  of_each("syncopate_train_loss", "gauge", "Mean loss over the worker's last batch.",
          [&](std::size_t rank, const WorkerTotals& w) {
            return w.loss ? one("syncopate_train_loss", rank, *w.loss) : "";
          });
  of_each("syncopate_train_accuracy", "gauge", "Accuracy on the worker's last batch, 0 to 1.",
          [&](std::size_t rank, const WorkerTotals& w) {
            return w.loss && !std::isnan(w.accuracy) ? one("syncopate_train_accuracy", rank, w.accuracy) : "";
          });
  return text;
}

std::string RunMetrics::text_of_evaluation() const {
  if (!newest_eval_) return {};
  const EvalRecord& eval = *newest_eval_;
  std::string text =
      gauge("syncopate_evaluated_step", "Steps of the job after which the weights were evaluated last.",
            static_cast<double>(eval.step)) +
      (eval.figures.r2 ? gauge("syncopate_test_r2", "R2 on the test set, 1 at most.", *eval.figures.r2)
                       : gauge("syncopate_test_accuracy", "Accuracy on the test set, 0 to 1.", eval.accuracy)) +
      gauge("syncopate_test_loss", "Mean loss over the test set.", eval.loss);
  if (eval.validation) {
    const ValidationFigures& held_out = *eval.validation;
    text += (held_out.r2
                 ? gauge("syncopate_validation_r2", "R2 on what is held out, 1 at most.", *held_out.r2)
                 : gauge("syncopate_validation_accuracy", "Accuracy on what is held out, 0 to 1.", held_out.accuracy)) +
            gauge("syncopate_validation_loss", "Mean loss over what is held out.", eval.validation->loss);
  }
  return text;
}

}  // namespace syncopate::experiments
