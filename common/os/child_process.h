// Starts a program as a child of this process (posix_spawn(3)).
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/os/process_handle.h"
#include "common/status.h"

namespace syncopate {

using EnvironmentVariables = std::vector<std::pair<std::string, std::string>>;

struct ChildOptions {
  std::vector<std::string> command;  // its first word is looked up in PATH
  EnvironmentVariables environment;  // added to this process's, or in place of what that has
  std::optional<int> input = {};     // a descriptor; none: there is nothing to read
  std::string error_file = {};       // standard error is appended to it; empty: goes where this process's does
  std::optional<int> output = {};    // a descriptor; none: standard output goes where standard error does
  bool own_group = false;            // it leads a process group, which signals of this process's terminal do not reach
};

struct ChildProcess {
  pid_t pid = 0;
  ProcessHandle handle;
};

// The child begins with no signal blocked, and with the default actions that default_in_programs() says. Fails with
// resource exhausted if processes, memory or descriptors run out, else with internal; the message is the system's
// reason.
Result<ChildProcess> spawn(const ChildOptions& options);

}  // namespace syncopate
