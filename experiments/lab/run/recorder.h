// Recorder: records a run's output in the results' folder, shows it to the person who watches, and makes the report at
// the end.
#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/param_layout.h"
#include "experiments/cluster/control/attention.h"
#include "experiments/cluster/coordinator/coordinator.h"
#include "experiments/lab/board/run_watcher.h"
#include "experiments/lab/report/learning_words.h"
#include "experiments/lab/report/progress.h"
#include "experiments/lab/report/results_writer.h"
#include "experiments/lab/report/step_log.h"
#include "experiments/lab/run/console.h"
#include "experiments/lab/trace/trace_file.h"

namespace syncopate::experiments {

// The facts of the job that the recorder needs.
struct JobFacts {
  ParamLayout layout;
  ParamLayout local_layout = {};     // layout of what the model keeps besides its weights
  std::int64_t steps_per_epoch = 1;  // this and the next: 0 if only a program of the person's own knows
  std::int64_t total_steps = 1;      // steps of the job, in global batches
  std::int64_t train_samples = 0;
  std::string data_sum = {};  // of own data: a checksum of all samples, by which a run that resumes knows them
  std::string data = {};      // what it learns from, of own data; else empty
  std::vector<std::string> notes = {};    // what a person must know of the data before it is trained on
  std::optional<double> best_loss;        // on the test set, if known
  std::optional<Guessing> guessing = {};  // on the test set
  std::int64_t first_step = 0;            // above 0 in a run that resumes from a checkpoint
  std::int64_t batches_done = 0;          // batches done by `first_step`, if workers share the job's batches
  std::int64_t samples_per_epoch = 0;
  // What was trained before `first_step`: figures of samples and of time until then count from there.
  std::int64_t samples_before = 0;
  std::optional<double> seconds_before = 0;  // none: the checkpoint does not tell
};

class Recorder final : public RunObserver {
 public:
  // Records one repeat of a run, and shows it to `watchers` while it goes on. All outlive the recorder.
  Recorder(const ResolvedRun& config, const JobFacts& job, ResultsWriter& results, Console& console,
           std::vector<RunWatcher*> watchers = {});

  void on_training_begins(TimePoint now) override;
  void on_steps(int worker, std::span<const StepRecord> steps) override;
  void on_evaluation(const EvaluationResult& result) override;
  void on_final_weights(std::span<const float> weights, std::span<const float> local_state,
                        const TableKeys& rows) override;
  void on_worker_lost(int rank) override;
  void on_worker_joined(int rank) override;
  void on_fact(const std::string& name, const std::string& value) override { facts_[name] = value; }
  void on_trace(const std::string& process, std::span<const TraceEvent> events, std::int64_t dropped) override {
    trace_.add(process, events, dropped);
  }
  void on_fault() override;
  void on_not_finite(std::int64_t step, const std::string& line) override;
  void on_output(const std::string& line) override;
  void on_report(const std::string& line) override;
  Status on_tick(TimePoint now) override;

  // Writes what is left. Call it once, when the run is over.
  Status finish();
  // The following are valid after finish(). The steps of workers() live as long as the recorder.
  RunReport report() const;
  const std::vector<EvalRecord>& evals() const { return evals_; }
  const std::vector<WorkerSteps>& workers() const { return workers_; }
  // Laid out as snapshot_layout says; empty if no weights arrived that fit the model.
  const std::vector<float>& final_weights() const { return final_weights_; }
  const TableKeys& final_rows() const { return final_rows_; }
  const std::map<std::string, std::string>& facts() const { return facts_; }
  // Writes trace.json into the results' folder, as TraceLog::write does.
  Result<TraceFacts> write_trace(const TraceNotes& notes) const {
    return trace_.write(results_.directory(), "trace.json", notes, origin_);
  }
  // Number of evaluations, without that of the final weights.
  std::int64_t points_evaluated() const { return points_evaluated_; }
  // Steps of the job that were finished, by the worker that finished most.
  std::int64_t furthest_step() const { return furthest_step_; }

 private:
  Status make_logs();
  Progress progress() const;
  void show_finished_epoch(TimePoint now);
  void show_evaluation(const EvalRecord& record);
  // Records evaluations once the records of all steps that were finished before their snapshots have arrived.
  void record_evaluations(TimePoint taken_before);
  // Counts the steps of all workers until `time`. Times must ascend, so that counted records need not be read again.
  void count_steps_until(const EvaluationResult& result);
  // Keeps the first failure to write, which ends the run.
  void note(const Status& status) {
    if (failure_.ok()) failure_ = status;
  }

  const ResolvedRun& config_;
  const JobFacts& job_;
  ResultsWriter& results_;
  Console& console_;
  const std::vector<RunWatcher*> watchers_;
  ProgressTracker tracker_;
  TimePoint origin_{};
  bool training_ = false;
  struct Worker {
    StepLog log;
    std::size_t counted = 0;   // number of steps included in samples_
    StepLog::View steps = {};  // all steps, once the run is over
  };
  std::vector<Worker> logs_;  // by rank; empty if their files could not be created
  std::vector<WorkerSteps> workers_;
  std::int64_t samples_;  // of all workers, as far as they have been counted
  // Sums over the counted steps since the last evaluation, by sample.
  struct TrainedSince {
    double loss = 0, accuracy = 0;
    std::int64_t samples = 0;
    std::optional<double> mean(double sum) const {
      if (samples == 0 || std::isnan(sum)) return std::nullopt;  // regression has no accuracy
      return sum / static_cast<double>(samples);
    }
  } since_evaluation_;
  std::int64_t points_evaluated_ = 0;
  std::int64_t furthest_step_ = 0;
  std::vector<EvaluationResult> waiting_;  // not recorded yet
  TimePoint last_tick_{};
  std::optional<Attention> attention_;           // set from the first tick on
  TimePoint records_are_in_ = TimePoint::min();  // when late records have arrived after an absence
  std::vector<EvalRecord> evals_;
  std::vector<float> final_weights_;
  TableKeys final_rows_;
  std::map<std::string, std::string> facts_;
  TraceLog trace_;
  std::int64_t epochs_shown_ = 0;
  std::int64_t epochs_evaluated_ = 0;
  Duration records_within_{};  // a step's record arrives so long after its end, at most
  Status failure_;             // the first failure to write
};

}  // namespace syncopate::experiments
