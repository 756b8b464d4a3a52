// `compare FOLDER FOLDER...`: compares finished runs, without training anything.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/cluster/exit_code.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// Reads the runs that left their results in `folders` (config.toml, summary.json, evals.csv, environment.json) as a
// comparison. A row is named by its mode and by the options in which the runs differ. Runs that differ only in their
// seed are rounds of one row, in the order of the folders. Since they did not alternate in time, no round pairs rows.
// Fails, naming the file, if one is missing, incomplete or malformed.
Result<ComparisonReport> read_finished_runs(const std::vector<std::string>& folders);

// Shows the comparison and writes its files to `output` (empty: a new folder below results/), which must be empty or
// not exist yet. `prices` are of a process, for an hour. `command` is the line as it was typed. `plots`: draws the
// charts below the tables.
ExitCode compare_finished(const std::vector<std::string>& folders, const std::optional<prediction::HostPrices>& prices,
                          const std::optional<std::string>& output, const std::string& command, bool plots = false);

}  // namespace syncopate::experiments
