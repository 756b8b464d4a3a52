// ProcessLogs: what the processes of a simulated cluster log, each in a file of its own, as on real hosts, with the
// virtual time of each line, from the beginning of the run.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/text/log.h"
#include "experiments/cluster/plan/job_plan.h"
#include "simulation/world.h"

namespace syncopate::experiments {

class ProcessLogs {
 public:
  // Takes what these processes log until it is destroyed. Files lie in `directory`, which must exist; a process that
  // logs nothing has none. All must outlive it.
  ProcessLogs(const simulation::World& world, const JobPlan& plan, std::string directory);

  // Lines of this group's actors are the process's.
  void begin(simulation::World::GroupId group, std::size_t process) { processes_[group] = process; }
  // The process's file, whether it is there or not.
  std::string file_of(std::size_t process) const;

 private:
  bool write(LogLevel level, const std::string& message);

  const simulation::World& world_;
  const JobPlan& plan_;
  const std::string directory_;
  const TimePoint begin_;
  std::map<simulation::World::GroupId, std::size_t> processes_;
  RedirectedLog redirected_;  // last: it calls write()
};

}  // namespace syncopate::experiments
