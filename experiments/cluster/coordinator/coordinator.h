// Coordinator: carries out a run. It launches the processes, connects them, relays snapshots to the evaluator, passes
// measurements to an observer, and carries out the decisions of RunMonitor.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/server_figures.h"
#include "common/step_record.h"
#include "common/trace/trace_event.h"
#include "experiments/checkpoint/checkpoint_keeper.h"
#include "experiments/cluster/control/test_figures.h"
#include "experiments/cluster/control/weights_snapshot.h"
#include "experiments/cluster/coordinator/cluster_runtime.h"
#include "experiments/cluster/coordinator/health_watch.h"
#include "experiments/cluster/coordinator/run_monitor.h"
#include "experiments/cluster/faults/fault_record.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

struct EvaluationResult {
  std::int64_t steps_done = 0;  // steps of the worker whose weights were evaluated
  TimePoint taken{};
  bool final = false;
  double accuracy = 0;  // not a number where a program of the person's own does not say it; so is the loss
  double loss = 0;
  TestFigures figures = {};
  std::optional<ValidationFigures> validation = {};  // where samples are held out
  // As a program of the person's own says, which alone knows how long an epoch is; not a number if it does not.
  std::optional<double> epoch = {};
};

// Receives the results of a run while it goes on, on the coordinator's thread.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void on_training_begins(TimePoint now) = 0;
  virtual void on_steps(int worker, std::span<const StepRecord> steps) = 0;
  virtual void on_evaluation(const EvaluationResult& result) = 0;
  // `local_state` is the mean over the workers of what their models keep besides the weights; empty for most models.
  // For row-sparse tables, `weights` has the rows `rows`, laid out as snapshot_layout says.
  virtual void on_final_weights(std::span<const float> weights, std::span<const float> local_state,
                                const TableKeys& rows) = 0;
  // A worker was lost, and the others go on without it.
  virtual void on_worker_lost(int rank) = 0;
  // A lost worker takes part again.
  virtual void on_worker_joined(int rank) = 0;
  // A process reports a fact about itself.
  virtual void on_fact(const std::string& name, const std::string& value) = 0;
  // Events of a process's traced steps, by our clock, and how many more did not fit. Called any number of times for a
  // process ("worker 1").
  virtual void on_trace(const std::string& /*process*/, std::span<const TraceEvent> /*events*/,
                        std::int64_t /*dropped*/) {}
  // A fault of --fault has just been injected.
  virtual void on_fault() {}
  // Something was the first in the run that is not a finite number; on_report, or the verdict, has the same line.
  virtual void on_not_finite(std::int64_t /*step*/, const std::string& /*line*/) {}
  // A program of the person's own has printed a line.
  virtual void on_output(const std::string& /*line*/) {}
  // A message that a person should see, such as the loss of a worker.
  virtual void on_report(const std::string& line) = 0;
  // Called about every 100 ms. A failure (the disk is full) ends the run.
  virtual Status on_tick(TimePoint now) = 0;
};

struct RunOutcome {
  std::optional<Verdict> verdict;    // none: success
  std::vector<std::string> reports;  // the lines passed to on_report
  bool stopped_at_target = false;    // training ended before its last epoch
  bool lost_evaluator = false;       // permanently
  bool is_final_evaluated = true;
  std::int64_t server_updates = 0;    // sum over all servers
  std::int64_t simulated_events = 0;  // of a simulated cluster, see World::events(); the same at every run
  // Messages that failed their checks and connections that were rejected, by the name of the process that noticed;
  // "coordinator" for the control connection. Names without any are absent.
  std::map<std::string, std::int64_t> rejected_connections;
  // The peak memory of each process, in bytes, by its name.
  std::map<std::string, std::int64_t> peak_memory;
  std::map<int, ServerFigures> servers;  // by rank; of the replica that reported, if there are two
  // How far the clock of each process on another host may be wrong after correction, by its name.
  std::map<std::string, Duration> clock_uncertainty;
  std::optional<CheckpointFigures> checkpoints;  // if any were to be written
  std::vector<FaultRecord> faults;               // with the outcome of each
  std::optional<HealthRecord> health;            // none: all that was looked at was finite
};

struct CoordinatorOptions {
  // How long the last messages of a process may take to arrive after it has ended.
  Duration last_words_time = std::chrono::milliseconds(500);
  std::int64_t total_steps = 0;      // steps of the job; needed if faults are drawn, or if workers share its batches
  std::int64_t batches_done = 0;     // batches of the job that are done when it resumes from a checkpoint
  std::size_t local_state_size = 0;  // number of values that each worker sends at points to evaluate
  std::optional<CheckpointKeeperOptions> checkpoints = {};  // checkpoints that the run writes
  std::string resume = {};                                  // the checkpoint that it resumes from
  std::string resume_digest = {};                           // digest of that checkpoint's manifest
};

// Carries out the run, whose processes `runtime` has, and returns when they all have ended.
Result<RunOutcome> coordinate(const ResolvedRun& config, const JobPlan& plan, const CoordinatorOptions& options,
                              ClusterRuntime& runtime, RunObserver& observer);

}  // namespace syncopate::experiments
