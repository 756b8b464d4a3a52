// How a process ended, and how a run did. Plain data.
#pragma once

#include <signal.h>

#include <optional>
#include <string>

#include "experiments/cluster/exit_code.h"

namespace syncopate::experiments {

struct Verdict {
  ExitCode code = ExitCode::kInternal;
  std::string line;  // for a person
};

// How a process ended, as far as the coordinator can see.
struct ProcessEnd {
  std::optional<int> exit_code;  // neither: it is gone, and its status is its parent's
  std::optional<int> signal;
  bool of_remote_shell = false;  // not the process, as far as is known, but the remote shell that it hung on
  std::string last_words = {};   // the last line of its log, where that may say why

  // It has ended itself, and not well: by an exit code, or as a library does that finds no way on.
  bool has_last_words() const { return exit_code.value_or(0) != 0 || signal == SIGABRT; }
  // How it ended is known to its carrier alone.
  bool is_known_to_carrier_alone() const { return !exit_code && !signal; }
};

// What is said of a process behind its name: "was killed by signal 9 (Killed)".
std::string describe(const ProcessEnd& end);

}  // namespace syncopate::experiments
