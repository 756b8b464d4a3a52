// How a run ended, as its exit code: one for each class of failure. README.md has the same table.
#pragma once

#include "common/status.h"

namespace syncopate::experiments {

enum class ExitCode {
  kSuccess = 0,
  kInternal = 1,       // a defect of this program, or of the machine
  kUsage = 2,          // a flag, a configuration or a combination that cannot work; nothing was launched
  kData = 3,           // the data set is missing, corrupt or truncated
  kOutput = 4,         // results cannot be written: no permission, no space; or memory, threads or descriptors ran out
  kProcessLost = 5,    // a process of the job ended early
  kTimeout = 6,        // a process stopped answering, or a wait passed its deadline
  kUnequal = 7,        // compare: modes that must follow the same curve do not; demo --check: a wrong answer
  kNotFinite = 8,      // a loss, gradient, weight or rate is NaN or infinite, and the run was to stop then
  kInterrupted = 130,  // Ctrl-C
  kTerminated = 143    // SIGTERM, after which a last checkpoint was written
};

// Returns the class of a failure.
ExitCode exit_code_of(const Status& status);

}  // namespace syncopate::experiments
