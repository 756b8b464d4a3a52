// The command lines of `profile` and `calibrate`, which measure this machine. Pure.
#pragma once

#include "common/status.h"
#include "experiments/config/command_line.h"

namespace syncopate::experiments {

// Returns what is to be measured: for profile a run of one worker, for calibrate one of two in step. The output is a
// file. Fails with invalid argument for an option that has nothing to do with it, and as a run would.
Result<CommandLine> profile_line(const GivenOptions& given);
Result<CommandLine> calibrate_line(const GivenOptions& given);

}  // namespace syncopate::experiments
