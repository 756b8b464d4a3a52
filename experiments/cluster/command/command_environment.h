// The environment of a worker that is a program of the person's own: which rank it is, as torchrun says it, and what
// --mode and the other options ask of it, as syncopate.torch reads it (docs/own_program.md has the list). Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// What is known when the process is started: where rank 0 is reached (on one host, the port alone), and the file for
// its steps (common/step_file.h).
inline constexpr const char* kMasterAddress = "MASTER_ADDR";
inline constexpr const char* kMasterPort = "MASTER_PORT";
inline constexpr const char* kStepFile = "SYNCOPATE_STEP_FILE";
// Where the run has other hosts, also the address by which they reach this process's host, and the file that holds the
// run's secret (common/transport/run_keys.h), which this user alone can open.
inline constexpr const char* kOwnAddress = "SYNCOPATE_ADDRESS";
inline constexpr const char* kSecretFile = "SYNCOPATE_SECRET_FILE";

// Returns the variables of worker `rank`, but for these. Requires runs_command(config).
std::vector<std::pair<std::string, std::string>> command_environment(const ResolvedRun& config, int rank);

}  // namespace syncopate::experiments
