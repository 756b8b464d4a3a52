// The options that say what a model is and what it is evaluated on, as they stand beside its weights.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// Returns the metadata of a run's file of weights: those options that have an effect, without what is of this machine
// alone, and the mode.
std::map<std::string, std::string> model_metadata(const ResolvedRun& config);

}  // namespace syncopate::experiments
