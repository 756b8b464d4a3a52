// Circumstances: what all rows of a comparison were run under, and what to beware of when they are read. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/config/run_settings.h"
#include "experiments/lab/compare/planned_run.h"

namespace syncopate::experiments {

// Returns a line for each. `base` is what the rows share but for the options `varied`; `cores` are this machine's.
std::vector<std::string> circumstances_of(std::span<const PlannedRun> rows, const RunSettings& base,
                                          const std::vector<std::string>& varied, int cores);

}  // namespace syncopate::experiments
