// Coordinator: carries a run out. It launches the processes, brings them together, relays snapshots to the evaluator,
// hands what is measured to an observer, and does what RunMonitor decides.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/step_record.h"
#include "experiments/checkpoint/checkpoint_keeper.h"
#include "experiments/cluster/control/control_server.h"
#include "experiments/cluster/control/snapshot_layout.h"
#include "experiments/cluster/control/test_figures.h"
#include "experiments/cluster/coordinator/interrupts.h"
#include "experiments/cluster/coordinator/run_monitor.h"
#include "experiments/cluster/faults/fault_record.h"
#include "experiments/cluster/launcher/launcher.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

struct EvaluationResult {
  std::int64_t steps_done = 0;  // of the worker whose weights they are
  TimePoint taken{};
  bool final = false;
  double accuracy = 0;
  double loss = 0;
  TestFigures figures = {};
};

// Takes what a run yields, on the coordinator's thread, while it goes on.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void on_training_begins(TimePoint now) = 0;
  virtual void on_steps(int worker, std::span<const StepRecord> steps) = 0;
  virtual void on_evaluation(const EvaluationResult& result) = 0;
  // `local_state` is the mean over the workers of what their models keep beside the weights; empty for most models.
  // Of row-sparse tables, `weights` has `rows`, laid out as snapshot_layout says.
  virtual void on_final_weights(std::span<const float> weights, std::span<const float> local_state,
                                const TableKeys& rows) = 0;
  // A worker is gone, and the others go on without it.
  virtual void on_worker_lost(int rank) = 0;
  // It takes part again.
  virtual void on_worker_joined(int rank) = 0;
  // What a process says of itself.
  virtual void on_fact(const std::string& name, const std::string& value) = 0;
  // Something a person should know: a lost worker, say.
  virtual void on_report(const std::string& line) = 0;
  // Called about every 100 ms. A failure (the disk is full) ends the run.
  virtual Status on_tick(TimePoint now) = 0;
};

struct RunOutcome {
  std::optional<Verdict> verdict;    // none: success
  std::vector<std::string> reports;  // what on_report was told
  bool stopped_at_target = false;    // before its last epoch
  bool lost_evaluator = false;       // for good
  bool is_final_evaluated = true;
  std::int64_t server_updates = 0;  // over all servers
  // What did not check out, messages and connections that were not let in: by the name of the process that noticed,
  // "coordinator" for the control connection. Only where there was any.
  std::map<std::string, std::int64_t> strangers;
  // The most memory that each process had, in bytes, by its name.
  std::map<std::string, std::int64_t> peak_memory;
  // By how much the clock of each process on another host may be wrong after correction, by its name.
  std::map<std::string, Duration> clock_uncertainty;
  std::optional<CheckpointFigures> checkpoints;  // where any were to be written
  std::vector<FaultRecord> faults;               // what became of each
};

struct CoordinatorOptions {
  std::string program;        // the executable to launch
  std::string log_directory;  // exists
  // A process's last words may take so long from its end of the connection to ours once it has ended.
  Duration last_words_time = std::chrono::milliseconds(500);
  ListenOptions listen;
  std::int64_t total_steps = 0;      // of the job; needed where faults are drawn, and where workers share its batches
  std::int64_t batches_done = 0;     // of the job, where it goes on from a checkpoint
  std::size_t local_state_size = 0;  // of the model: values that each worker sends at points to evaluate
  std::optional<CheckpointKeeperOptions> checkpoints = {};  // that the run writes
  std::string resume = {};                                  // a checkpoint that it goes on from
  std::string resume_digest = {};                           // of its manifest
};

// Returns when every process of the run has ended. `config` has been through resolve().
Result<RunOutcome> coordinate(const RunConfig& config, const JobPlan& plan, const CoordinatorOptions& options,
                              Launcher& launcher, RunObserver& observer, Interrupts& interrupts);

}  // namespace syncopate::experiments
