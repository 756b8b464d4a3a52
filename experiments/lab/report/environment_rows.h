// What a page says of the machine that a run was on, and of the command that runs it again. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/cluster/host/environment.h"

namespace syncopate::experiments {

// Returns rows of a table without a heading: what is known, and its value.
std::vector<std::vector<std::string>> environment_rows(const Environment& machine);

// Returns "./run_experiment --config=FOLDER/config.toml", quoted for a shell where it needs to be.
std::string command_again(const std::string& folder);

}  // namespace syncopate::experiments
