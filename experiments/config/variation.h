// Variation: what `compare --vary=OPTION=VALUE,...` asks for, an option and the values that each mode is run with. If
// it is given several times, every combination of values is run.
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

// Reads "batch-size=32,64,128". Values that contain commas are separated by semicolons: "straggler=none;0:2x,1:4x".
// Fails, saying what would be right, if there is no such option, if it cannot be varied (because it distinguishes
// modes, or says where results go), or if a value is given twice. varied_runs checks the values.
Result<Variation> parse_variation(std::string_view text);

// Sets one value in a config in which the option has not been given. Besides the option's own values it accepts
// `default`, which leaves the option as it is; `none`, which does the same where that is the default; and true or false
// for a switch.
Status set_varied(RunRequest& config, const std::string& option, const std::string& value);

struct VariedRuns {
  std::vector<ComparedRun> runs;
  std::vector<std::string> left_out;  // one line for each combination that cannot run, with the reason
};

// Returns one run for each of `modes` (as comparison_runs takes them) and each combination of values; the values of the
// last variation change fastest: "allreduce batch-size=32 servers=2". Combinations that differ only in options without
// an effect in a mode are run once. Fails if no combination can run, or if the option does not accept a value.
Result<VariedRuns> varied_runs(const RunRequest& base, const std::string& modes, std::span<const Variation> variations);

}  // namespace syncopate::experiments
