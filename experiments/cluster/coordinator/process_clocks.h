// ProcessClocks: how far the clock of each process is from the coordinator's. A process on another host asks for the
// time, works the difference out (control/clock_offset.h), and reports it.
//
// Used by the coordinator's thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "common/clock.h"
#include "experiments/cluster/control/control_server.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

class ProcessClocks {
 public:
  // All arguments outlive this.
  ProcessClocks(const JobPlan& plan, const Clock& clock, ControlServer& control);

  void on_question(std::size_t process, const control::ClockQuestion& question, TimePoint received);
  void on_report(std::size_t process, const control::ClockReport& report);

  // Returns what is added to time stamps of `process` to convert them to our clock: 0 until it has reported.
  Duration offset(std::size_t process) const { return offsets_[process]; }
  // Returns how far the stamps of processes that have reported may be wrong after that, by name.
  const std::map<std::string, Duration>& uncertainty() const { return uncertainty_; }

 private:
  const JobPlan& plan_;
  const Clock& clock_;
  ControlServer& control_;
  std::vector<Duration> offsets_;  // by process
  std::map<std::string, Duration> uncertainty_;
};

}  // namespace syncopate::experiments
