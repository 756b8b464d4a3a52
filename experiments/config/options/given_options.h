// GivenOptions: options as a person gave them, on the command line or in a file, before they become a RunRequest.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "experiments/config/options/option_table.h"
#include "experiments/config/resolved_run.h"
#include "experiments/config/run_request.h"

namespace syncopate::experiments {

// The name (without dashes) and the text of each option that was given.
using GivenOptions = std::map<std::string, std::string>;

// Returns the options in the text of a config file. Fails if a name is unknown (and suggests the nearest) or given
// twice, or a value is not allowed.
Result<GivenOptions> given_in_file(std::string_view toml);
// The same for entries that have been read from such a file.
Result<GivenOptions> given_in_entries(const std::vector<std::pair<std::string, std::string>>& entries);

// Merges both. The command line wins, also over an option of the file that excludes one of its own.
GivenOptions merge(const GivenOptions& line, GivenOptions file);

// Returns the defaults with each given value checked and set. Fails at the first value that is not allowed, or that
// excludes another.
Result<RunRequest> apply_options(const GivenOptions& given);

// Returns the word of a command line that gives the option this value: "--mode=ps", "--elastic".
std::string as_typed(const OptionSpec& option, const std::string& value);

// Fails if a given option has no effect in any of `runs`, since it would be silently ignored. `modes` is where a
// comparison's modes are named; empty for one run.
Status check_effect(const GivenOptions& given, const std::vector<ResolvedRun>& runs, const std::string& modes = {});

}  // namespace syncopate::experiments
