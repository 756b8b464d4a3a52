#include "experiments/lab/run/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "experiments/cluster/control/records_interval.h"
#include "experiments/lab/evaluate/model_options.h"

namespace syncopate::experiments {
namespace {

// Records arrive within this time after they are due.
constexpr Duration kOnTheirWay = std::chrono::milliseconds(800);

}  // namespace

Recorder::Recorder(const ResolvedRun& config, const JobFacts& job, ResultsWriter& results, Console& console,
                   std::vector<RunWatcher*> watchers)
    : config_(config),
      job_(job),
      results_(results),
      console_(console),
      watchers_(std::move(watchers)),
      tracker_({.workers = config.workers,
                .steps_per_epoch = job.steps_per_epoch,
                .total_steps = job.total_steps,
                .first_step = job.first_step,
                .by_position = shares_work(config) || batches_a_step(config) < config.workers,
                .batches_an_update = shares_work(config) ? 1 : batches_a_step(config),
                .is_virtual = config.cluster == ClusterKind::kSimulated,
                .learns = !is_profile(config),
                .holds_out = config.validation.has_value()}),
      workers_(static_cast<std::size_t>(config.workers)),
      samples_(job.samples_before),
      epochs_shown_(job.first_step / std::max<std::int64_t>(1, job.steps_per_epoch)),
      epochs_evaluated_(epochs_shown_),
      records_within_(records_interval(config.workers) + kOnTheirWay) {
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) workers_[rank].rank = static_cast<int>(rank);
  note(make_logs());
}

Status Recorder::make_logs() {
  while (logs_.size() < workers_.size()) {
    SYNCOPATE_ASSIGN_OR_RETURN(StepLog log, StepLog::create(results_.directory()));
    logs_.push_back({std::move(log)});
  }
  return {};
}

void Recorder::on_training_begins(TimePoint now) {
  training_ = true;
  origin_ = now;
  results_.begin_repeat(now);
  for (RunWatcher* watcher : watchers_) watcher->begin(now);
}

void Recorder::on_steps(int worker, std::span<const StepRecord> steps) {
  for (const StepRecord& step : steps) {
    if (!failure_.ok()) return;
    note(logs_[static_cast<std::size_t>(worker)].log.add(step));
    results_.add(worker, step);
    tracker_.add(worker, step);
    for (RunWatcher* watcher : watchers_) watcher->add(worker, step);
    furthest_step_ = std::max(furthest_step_, step.step + 1);
  }
}

void Recorder::on_evaluation(const EvaluationResult& result) { waiting_.push_back(result); }

void Recorder::on_final_weights(std::span<const float> weights, std::span<const float> local_state,
                                const TableKeys& rows) {
  // The evaluator fails the run for weights that do not fit this model.
  if (rows.size() != job_.layout.tables().size() || std::ranges::any_of(rows, &std::vector<RowKey>::empty)) return;
  ParamLayout layout = snapshot_layout(job_.layout, rows);
  if (weights.size() != layout.size() || local_state.size() != job_.local_layout.size()) return;
  final_weights_.assign(weights.begin(), weights.end());
  final_rows_ = rows;
  // The two arenas together are the arena of all tensors.
  for (const TensorSpec& tensor : job_.local_layout.tensors()) layout.add(tensor.name, tensor.shape);
  std::vector<float> values = final_weights_;
  values.insert(values.end(), local_state.begin(), local_state.end());
  std::vector<WholeNumbers> keys;
  for (std::size_t table = 0; table < rows.size(); ++table) {
    keys.push_back({job_.layout.tensors()[table].name + ".rows", {rows[table].begin(), rows[table].end()}});
  }
  note(results_.write_model(layout, values, keys, model_metadata(config_)));
}

void Recorder::on_fault() {
  for (RunWatcher* watcher : watchers_) watcher->fault_injected();
}

void Recorder::on_not_finite(std::int64_t step, const std::string& line) {
  for (RunWatcher* watcher : watchers_) watcher->not_finite(step, line);
}

void Recorder::on_output(const std::string& line) { console_.show(line); }

void Recorder::on_report(const std::string& line) { console_.event(line); }

void Recorder::on_worker_lost(int rank) {
  workers_[static_cast<std::size_t>(rank)].lost = true;
  tracker_.worker_lost(rank);
  for (RunWatcher* watcher : watchers_) watcher->worker_lost(rank);
}

void Recorder::on_worker_joined(int rank) {
  workers_[static_cast<std::size_t>(rank)].lost = false;
  tracker_.worker_joined(rank);
  for (RunWatcher* watcher : watchers_) watcher->worker_joined(rank);
}

Status Recorder::on_tick(TimePoint now) {
  last_tick_ = now;
  if (!attention_) attention_.emplace(now);
  // Messages that workers sent during the absence arrive now.
  if (attention_->absence(now) > Duration::zero()) records_are_in_ = now + records_within_;
  if (now >= records_are_in_) record_evaluations(now - records_within_);
  for (RunWatcher* watcher : watchers_) {
    note(watcher->tick(now, now >= records_are_in_ ? now - records_within_ : TimePoint::min()));
  }
  if (training_) {
    console_.progress(progress(), now);
    show_finished_epoch(now);
    note(results_.flush_if_due(now));
  }
  return failure_;
}

Progress Recorder::progress() const {
  Progress progress = tracker_.progress();
  if (!runs_command(config_)) return progress;
  // Such a program need not say what it knows.
  if (progress.loss && std::isnan(*progress.loss)) progress.loss.reset();
  if (progress.accuracy && std::isnan(*progress.accuracy)) progress.accuracy.reset();
  return progress;
}

void Recorder::show_finished_epoch(TimePoint now) {
  if (tracker_.epochs_finished() <= epochs_shown_) return;
  epochs_shown_ = tracker_.epochs_finished();
  Progress progress = this->progress();
  progress.epoch = epochs_shown_ - 1;  // the slowest worker may already be in the next one
  progress.accuracy.reset();           // it follows in a line of its own, once it is known
  console_.epoch_finished(progress, now);
}

// Shows the first evaluation at or after the end of an epoch, whose own line was printed before it was known.
void Recorder::show_evaluation(const EvalRecord& record) {
  if (runs_command(config_)) return console_.evaluated(record);
  const auto epoch = static_cast<std::int64_t>(std::floor(record.epoch));
  if (epoch <= epochs_evaluated_) return;
  epochs_evaluated_ = epoch;
  console_.evaluated(record, tracker_.progress().epochs);
}

void Recorder::record_evaluations(TimePoint taken_before) {
  const auto due = [&](const EvaluationResult& result) { return result.taken < taken_before; };
  for (const EvaluationResult& result : waiting_) {
    if (!due(result)) continue;
    const double epoch =
        result.epoch.value_or(static_cast<double>(result.steps_done) / static_cast<double>(job_.steps_per_epoch));
    count_steps_until(result);
    const TrainedSince trained = std::exchange(since_evaluation_, {});
    const EvalRecord record{.epoch = epoch,
                            .step = result.steps_done,
                            .samples_seen = samples_,
                            .training_seconds = job_.seconds_before.value_or(0) + seconds(result.taken - origin_),
                            .accuracy = result.accuracy,
                            .loss = result.loss,
                            .figures = result.figures,
                            .validation = result.validation,
                            .train_loss = trained.mean(trained.loss),
                            .train_accuracy = trained.mean(trained.accuracy)};
    evals_.push_back(record);
    results_.add(record);
    tracker_.add(record);
    for (RunWatcher* watcher : watchers_) watcher->add(record);
    if (!result.final) ++points_evaluated_;
    show_evaluation(record);
  }
  std::erase_if(waiting_, due);
}

void Recorder::count_steps_until(const EvaluationResult& result) {
  // Where workers go in step, the weights have learnt the same steps of all; else those that had been finished by then.
  const bool in_step = !goes_at_own_pace(config_);
  const auto has_part = [&](const StepRecord& step) {
    return in_step ? step.step < result.steps_done : step.end <= result.taken;
  };
  for (Worker& worker : logs_) {
    const Result<StepLog::View> view = worker.log.all();
    if (!view.ok()) {
      note(view.status());
      continue;
    }
    const std::span<const StepRecord> steps = view->steps();
    for (; worker.counted < steps.size() && has_part(steps[worker.counted]); ++worker.counted) {
      const StepRecord& step = steps[worker.counted];
      samples_ += step.samples;
      if (std::isnan(step.loss)) continue;  // a program of the person's own does not say it
      since_evaluation_.samples += step.samples;
      since_evaluation_.loss += step.loss * static_cast<double>(step.samples);
      since_evaluation_.accuracy += step.accuracy * static_cast<double>(step.samples);
    }
  }
}

Status Recorder::finish() {
  record_evaluations(TimePoint::max());
  if (training_) show_finished_epoch(last_tick_);
  note(results_.flush());
  for (RunWatcher* watcher : watchers_) note(watcher->end());
  for (std::size_t rank = 0; rank < logs_.size(); ++rank) {
    Result<StepLog::View> view = logs_[rank].log.all();
    note(view.status());
    if (!view.ok()) continue;
    logs_[rank].steps = std::move(*view);
    workers_[rank].steps = logs_[rank].steps.steps();
  }
  return failure_;
}

RunReport Recorder::report() const {
  return make_report(workers_, evals_,
                     {.warmup_steps = config_.warmup_steps,
                      .target_accuracy = config_.target_accuracy,
                      .is_resumed = job_.first_step > 0,
                      .knows_time = job_.seconds_before.has_value()});
}

}  // namespace syncopate::experiments
