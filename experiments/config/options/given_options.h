// Options as a person gave them, on the command line or in a file, on their way to a RunConfig.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

// Name and text of each option that was given, without dashes.
using GivenOptions = std::map<std::string, std::string>;

// Those of a config file's text. Fails on a name that is not known (and suggests the nearest), or given twice.
Result<GivenOptions> given_in_file(std::string_view toml);

// `line` over `file`: what the command line says holds, also against an option of the file that excludes it.
GivenOptions merge(const GivenOptions& line, GivenOptions file);

// Defaults, with each given value checked and put in. Fails on the first that cannot be, or that excludes another.
Result<RunConfig> apply_options(const GivenOptions& given);

// Fails if an option was given that has no effect under any of `configs`: it would be ignored in silence.
Status check_effect(const GivenOptions& given, const std::vector<RunConfig>& configs);

}  // namespace syncopate::experiments
