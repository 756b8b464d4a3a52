// FaultInjector: carries out the faults of a run as they become due, and keeps what became of each. What is due is for
// FaultCourse to say.
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
#include "experiments/cluster/faults/fault_course.h"
#include "experiments/cluster/faults/fault_record.h"
#include "experiments/cluster/plan/job_plan.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

class FaultInjector {
 public:
  // How processes of the plan, by index, are hurt.
  struct Hands {
    std::function<bool(std::size_t process)> still_there;
    // It is, and holds all that the others hold, so that one of these may be lost.
    std::function<bool(std::size_t process)> trains;
    // Sends a signal. Its pid; none where there is no such process (any more).
    std::function<std::optional<pid_t>(std::size_t process, int signal)> signal;
    // Tells it what is to go wrong on its links for so long.
    std::function<void(std::size_t process, LinkFault fault, Duration length)> hurt_links;
    // Shows a line to the person.
    std::function<void(const std::string& line)> report;
  };

  // `config` has been through resolve(); a worker of it makes `total_steps`. `plan` outlives the injector.
  FaultInjector(const RunConfig& config, std::int64_t total_steps, const JobPlan& plan, Hands hands);

  // Which steps this process is to announce before it begins them.
  std::vector<std::int64_t> announced_steps(std::size_t process) const;

  void on_training_begins(TimePoint now);
  // `process` is about to begin `step`, and waits for what is due then to be done.
  void on_step_begins(std::size_t process, std::int64_t step, TimePoint now);
  // `process` is heard to have finished so many steps.
  void on_steps(std::size_t process, std::int64_t steps_done, TimePoint now);
  // Does what is due.
  void act(TimePoint now);
  // When act() is to be called next, at the latest.
  TimePoint next() const { return ended_ ? TimePoint::max() : course_.next(); }

  // The run is over, or is to end: lets go of what is stopped, and hurts nobody any more.
  void end();
  // One for each fault, in the order in which they were done; then those that were never due, with the reason. After
  // end().
  std::vector<FaultRecord> records() const;

 private:
  std::optional<std::size_t> process_of(const FaultTarget& target) const;
  // But for those that have been killed, also while their end is yet to be noticed.
  std::vector<int> workers_training();
  void carry_out(const FaultAction& action, TimePoint now);
  void let_go(const FaultAction& action);
  // "it was never due: worker 1 made 702 steps"
  std::string why_not_due(const Fault& fault) const;
  std::string training_length() const;
  // What was done, for a person; none: the process is not there.
  std::optional<std::string> hurt(const FaultAction& action);

  const JobPlan& plan_;
  const Hands hands_;
  FaultCourse course_;
  std::vector<FaultRecord> records_;
  std::set<std::size_t> killed_;            // not noticed yet
  std::map<int, std::int64_t> steps_done_;  // by rank, as far as has been heard
  std::optional<TimePoint> begun_;          // training
  TimePoint last_steps_{};                  // when steps were heard of last
  bool ended_ = false;
};

}  // namespace syncopate::experiments
