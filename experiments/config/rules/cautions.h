// What a config may do and a person may not expect: lines that a run shows before it begins, and keeps among its
// events. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/config/run_config.h"

namespace syncopate::experiments {

// Empty where there is nothing to be said. Of a config that has been through resolve().
std::vector<std::string> cautions(const RunConfig& config);

}  // namespace syncopate::experiments
