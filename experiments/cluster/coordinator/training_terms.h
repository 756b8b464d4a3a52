// TrainingTerms: tells each worker on what terms it trains: whether there is a next epoch, and whether it takes
// snapshots for the evaluator. Whether an epoch is trained is EpochSchedule's to decide.
//
// Used by the coordinator's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/clock.h"
#include "experiments/cluster/control/control_server.h"
#include "experiments/cluster/coordinator/epoch_schedule.h"
#include "experiments/cluster/coordinator/run_monitor.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

class TrainingTerms {
 public:
  // All arguments outlive this.
  TrainingTerms(const ResolvedRun& config, const JobPlan& plan, RunMonitor& monitor, ControlServer& control);

  // Worker `process` asks whether to train this epoch. Before training has begun it waits for the answer, and is ready.
  void on_epoch_question(std::size_t process, std::int64_t epoch, TimePoint now);
  // Training begins: all who have asked are answered.
  void begin(TimePoint now);
  // There is a new membership epoch, whose members will ask again.
  void begin_membership() { epochs_.begin_membership(); }
  // A process that has nothing of what was told to the one before is started in its place.
  void on_start_again(std::size_t process) { takes_snapshots_[process] = false; }
  // Workers were evaluated to have reached this target_figure_of().
  void on_evaluation(double figure) { epochs_.on_evaluation(figure); }
  // Tells workers for which it has changed whether they take snapshots: the evaluator has fallen behind or caught up,
  // or there is another chief.
  void tell_changes();

  bool has_begun() const { return epochs_.has_begun(); }
  // Returns whether training was ended before its last epoch.
  bool has_ended_early() const { return epochs_.has_ended(); }

 private:
  void answer(const EpochSchedule::Question& question, TimePoint now);
  bool is_to_take_snapshots(std::size_t process);

  const ResolvedRun& config_;
  const JobPlan& plan_;
  RunMonitor& monitor_;
  ControlServer& control_;
  EpochSchedule epochs_;
  TimePoint began_{};
  std::vector<bool> takes_snapshots_;  // by process: what it was told last
};

}  // namespace syncopate::experiments
