// What runs on this machine, as its process list shows it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace syncopate::testing_support {

struct RunningProcess {
  pid_t pid = 0;
  std::vector<std::string> arguments;

  bool has(const std::string& argument) const;
};

// The processes of all runs that coordinator `pid` has started, and what carries them: known by --run= on their command
// lines, so that they are found when their coordinator is gone, too. Those that have ended are not among them.
std::vector<RunningProcess> processes_of_run(pid_t coordinator);

}  // namespace syncopate::testing_support
