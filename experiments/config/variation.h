// What `compare --vary=OPTION=VALUE,...` asks for: one option, and the values that each mode is run with.
#pragma once

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

// Of "batch-size=32,64,128". Fails, saying what would be right, where there is no such option, where it cannot be
// varied (what tells modes apart, where results go), or where a value is given twice. Values are checked by
// varied_runs.
Result<Variation> parse_variation(std::string_view text);

struct VariedRuns {
  std::vector<ComparedRun> runs;
  std::vector<std::string> left_out;  // one line for each combination that cannot run: which, and why
};

// One run for each of `modes` (as comparison_runs takes them) and each value: "allreduce batch-size=32". A mode in
// which the option has no effect is run once. Fails where no combination can run, and where a value is none of the
// option's.
Result<VariedRuns> varied_runs(const RunConfig& base, const std::string& modes, const Variation& variation);

}  // namespace syncopate::experiments
