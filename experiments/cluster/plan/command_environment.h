// The environment of a worker that is a program of the person's own: which rank it is, as torchrun says it, and what
// --mode and the other options ask of it, as syncopate.torch reads it (docs/own_program.md has the list). Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/launch/rank_variables.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// What is known when the process is started: where rank 0 is reached (on one host, the port alone), the file for its
// steps (common/step_file.h), and, where the run has other hosts, the address by which they reach this process's host,
// and the file that holds the run's secret (common/transport/run_keys.h).
inline constexpr const char* kStepFile = "SYNCOPATE_STEP_FILE";
inline constexpr const char* kOwnAddress = "SYNCOPATE_ADDRESS";

// Returns those variables of a run that a program may be unable to follow, "SYNCOPATE_MODE=ps SYNCOPATE_SERVERS=1":
// what the rows of a comparison ask is told in each (ResolvedRun::compared, with ';' between rows), so that the first
// to start can refuse what a later one asks.
std::string asked_of_program(const ResolvedRun& config);

// Returns the variables of worker `rank`, but for these. Requires runs_command(config).
std::vector<std::pair<std::string, std::string>> command_environment(const ResolvedRun& config, int rank);

}  // namespace syncopate::experiments
