// What `compare --vary=OPTION=VALUE,...` asks for: an option, and the values that each mode is run with. Given several
// times, every combination of values is run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "experiments/config/comparison.h"

namespace syncopate::experiments {

struct Variation {
  std::string option;               // its name in the option table: "batch-size"
  std::vector<std::string> values;  // at least one
};

// Of "batch-size=32,64,128"; where values have commas of their own, they stand between semicolons:
// "straggler=none;0:2x,1:4x". Fails, saying what would be right, where there is no such option, where it cannot be
// varied (what tells modes apart, where results go), or where a value is given twice. Values are checked by
// varied_runs.
Result<Variation> parse_variation(std::string_view text);

// Puts one value into a config in which the option has not been given. Beside what the option takes, `default` leaves
// it as it is where it is not given, as does `none` where that is the default; a switch is true or false.
Status set_varied(RunConfig& config, const std::string& option, const std::string& value);

struct VariedRuns {
  std::vector<ComparedRun> runs;
  std::vector<std::string> left_out;  // one line for each combination that cannot run: which, and why
};

// One run for each of `modes` (as comparison_runs takes them) and each combination of values, the last variation's
// changing fastest: "allreduce batch-size=32 servers=2". Of combinations that differ only in options without an effect
// in a mode, one is run. Fails where no combination can run, and where a value is none of the option's.
Result<VariedRuns> varied_runs(const RunConfig& base, const std::string& modes, std::span<const Variation> variations);

}  // namespace syncopate::experiments
