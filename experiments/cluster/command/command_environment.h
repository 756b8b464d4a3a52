// The environment of a worker that is a program of the person's own: which rank it is, as torchrun says it, and what
// --mode and the other options ask of it, as syncopate.torch reads it (docs/own_program.md has the list). Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// What a launcher adds when it starts the process: where rank 0 is reached, and the file for its steps
// (common/step_file.h).
inline constexpr const char* kMasterPort = "MASTER_PORT";
inline constexpr const char* kStepFile = "SYNCOPATE_STEP_FILE";

// Returns the variables of worker `rank`, but for these two. Requires runs_command(config).
std::vector<std::pair<std::string, std::string>> command_environment(const ResolvedRun& config, int rank);

}  // namespace syncopate::experiments
