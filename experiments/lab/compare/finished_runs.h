// `compare FOLDER FOLDER...`: finished runs, side by side, without training anything.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/cluster/exit_code.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// The runs that left their results in `folders` (config.toml, summary.json, evals.csv, environment.json), as a
// comparison. A row is named by its mode and by the options in which the runs differ; runs that differ in nothing but
// their seed are rounds of one row, in the order of the folders. Since they did not run in turns, no round pairs rows.
// Fails, naming the file, where one is missing, not whole, or not what it should be.
Result<ComparisonReport> read_finished_runs(const std::vector<std::string>& folders);

// Shows them, and leaves the files of a comparison in `output` (empty: a new folder below results/), which must be
// empty or not there yet. `command` is the line as it was typed.
ExitCode compare_finished(const std::vector<std::string>& folders, const std::string& output,
                          const std::string& command);

}  // namespace syncopate::experiments
