// FaultInjector: injects the faults of a run as they become due, and records the outcome of each. FaultTrigger decides
// what is due.
//
// Used by the coordinator's thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/clock.h"
#include "experiments/cluster/coordinator/cluster_runtime.h"
#include "experiments/cluster/coordinator/coordinator.h"
#include "experiments/cluster/coordinator/run_monitor.h"
#include "experiments/cluster/faults/fault_record.h"
#include "experiments/cluster/faults/fault_trigger.h"
#include "experiments/cluster/plan/job_plan.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

class FaultInjector {
 public:
  // How faults are injected into processes of the plan, by index.
  struct Hands {
    std::function<bool(std::size_t process)> still_there;
    // Returns whether it is there and has the same state as the others, so that one of these may be lost.
    std::function<bool(std::size_t process)> trains;
    // Sends a signal and returns the pid, 0 where processes have none; none if there is no such process (any more).
    std::function<std::optional<pid_t>(std::size_t process, int signal)> signal;
    // Orders the process to impair its links for this long.
    std::function<void(std::size_t process, LinkFault fault, Duration length)> impair_links;
    // Shows a line to the user.
    std::function<void(const std::string& line)> report;
  };

  // One of the workers of `config` makes `total_steps` steps. `plan` outlives the
  // injector.
  FaultInjector(const ResolvedRun& config, std::int64_t total_steps, const JobPlan& plan, Hands hands);

  // Returns the steps that this process must announce before it begins them.
  std::vector<std::int64_t> announced_steps(std::size_t process) const;

  void on_training_begins(TimePoint now);
  // `process` is about to begin `step`, and waits until the faults that are due then have been injected.
  void on_step_begins(std::size_t process, std::int64_t step, TimePoint now);
  // Returns whether the step that `process` is about to begin is to have a NaN in its gradient, once for each.
  bool take_planted(std::size_t process) { return planted_.erase(process) > 0; }
  // `process` has reported that it has finished this many steps.
  void on_steps(std::size_t process, std::int64_t steps_done, TimePoint now);
  // Injects the faults that are due.
  void act(TimePoint now);
  // Returns the latest time at which act() must be called again.
  TimePoint next() const { return ended_ ? TimePoint::max() : trigger_.next(); }

  // The run is over, or is about to end: continues stopped processes, and injects no more faults.
  void end();
  // Returns one record for each fault, in the order in which they were injected; then those that were never due, with
  // the reason. Valid after end().
  std::vector<FaultRecord> records() const;

 private:
  std::optional<std::size_t> process_of(const FaultTarget& target) const;
  // Returns the workers that train, without those that were killed, even if their end was not noticed yet.
  std::vector<int> workers_training();
  void carry_out(const FaultAction& action, TimePoint now);
  void let_go(const FaultAction& action);
  // Returns, for example, "it was never due: worker 1 made 702 steps".
  std::string why_not_due(const Fault& fault) const;
  std::string training_length() const;
  // Injects the fault and returns what was done, for a person; none: the process is not there.
  std::optional<std::string> inject(const FaultAction& action);

  const JobPlan& plan_;
  const Hands hands_;
  FaultTrigger trigger_;
  std::vector<FaultRecord> records_;
  std::set<std::size_t> planted_;           // whose next step's gradient is to hold a NaN
  std::set<std::size_t> killed_;            // killed, but not noticed yet
  std::map<int, std::int64_t> steps_done_;  // by rank, as far as reported
  std::optional<TimePoint> begun_;          // when training began
  TimePoint last_steps_{};                  // when steps were last reported
  bool ended_ = false;
};

// Returns hands on the processes of a run, which tell `observer` of each fault. All arguments outlive them.
FaultInjector::Hands hands_on(ClusterRuntime& runtime, const RunMonitor& monitor, RunObserver& observer);

}  // namespace syncopate::experiments
