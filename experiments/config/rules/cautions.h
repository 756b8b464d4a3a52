// Warnings about effects of a config that a person may not expect. A run shows these lines before it begins and records
// them among its events. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// Returns the warnings, or none.
std::vector<std::string> cautions(const ResolvedRun& config);

}  // namespace syncopate::experiments
