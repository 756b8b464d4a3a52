// The part of the command line that belongs to compare: turns its words into the rows of a comparison. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/config/command_line.h"
#include "experiments/config/options/given_options.h"

namespace syncopate::experiments {

// The options that only compare takes, as they were typed.
struct CompareWords {
  std::optional<std::string> modes, rate_rule, tune_rate;
  std::vector<std::string> vary;     // one for each --vary
  std::vector<std::string> folders;  // folders of finished runs
};

// Returns the comparison that `words` asks for, with the options `given` applied to all runs. Fails with invalid
// argument and one line that says what is wrong and what would be right.
Result<CommandLine> compare_line(const GivenOptions& given, const CompareWords& words);

}  // namespace syncopate::experiments
