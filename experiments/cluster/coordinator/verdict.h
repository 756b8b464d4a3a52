// How a process ended, and how a run ended. Plain data.
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
  std::optional<int> exit_code;  // neither: it has ended, and only its parent knows its status
  std::optional<int> signal;
  bool of_remote_shell = false;  // whether this is, as far as known, the end of its remote shell and not of the process
  std::string last_words = {};   // the last line of its log, if that may say why
  bool out_of_memory = false;    // whether the kernel has killed a process of this group meanwhile to get memory

  // Returns whether it has ended itself with a failure: by an exit code, or by abort(), as a library does that cannot
  // go on.
  bool has_last_words() const { return exit_code.value_or(0) != 0 || signal == SIGABRT; }
  // Returns whether only its carrier knows how it ended.
  bool is_known_to_carrier_alone() const { return !exit_code && !signal; }
};

// Returns what a child's status, as waitpid(2) gives it, says of its end. That of a remote shell says how its command
// on the other host has ended: 128 plus a signal, as shells do, and 255 if the shell itself has failed.
ProcessEnd end_of(int status, bool is_remote_shell);

// Returns the text that follows a process's name: "was killed by signal 9 (Killed)".
std::string describe(const ProcessEnd& end);

}  // namespace syncopate::experiments
