// Warnings about effects of a config that a person may not expect. A run shows these lines before it begins and records
// them among its events. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/config/run_config.h"

namespace syncopate::experiments {

// Returns the warnings, or none. `config` must have been through resolve().
std::vector<std::string> cautions(const RunConfig& config);

}  // namespace syncopate::experiments
