// `run_experiment reproduce convergence [--data-dir=DIR] [--output=DIR]`: runs the settings of convergence_plan.h, one
// after the other on a simulated cluster, and shows them beside what was published.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/cluster/exit_code.h"
#include "experiments/lab/convergence/convergence_table.h"
#include "experiments/lab/run/run_job.h"

namespace syncopate::experiments {

// What stands behind `reproduce` for these runs.
inline constexpr const char* kConvergenceName = "convergence";

struct ConvergenceRequest {
  std::string data_dir = "data";  // where digits are kept, and Fashion-MNIST's files may lie
  std::string output;             // the folder of the page and the values; empty: none are written
};

// `words` are those behind the program's name. Fails with invalid argument and one line that says what is wrong and
// what would be right.
Result<ConvergenceRequest> parse_convergence_line(const std::vector<std::string>& words);

// How to carry out a setting; what its runs leave lies below `folder`, which has no results yet. Fails as the first of
// its runs does.
struct ConvergenceRuns {
  Resolver resolver;
  JobRunner runner;
  std::string data_dir;
  std::string folder;
};
struct FailedRun {
  ExitCode exit = ExitCode::kSuccess;
  std::string verdict;
};

// Runs each setting of the table with kConvergenceSeeds seeds; after a failure, which `failed` then says, no more.
ReproducedConvergence run_settings(ConvergenceTable table, const ConvergenceRuns& runs, FailedRun& failed);

// Runs all tables, shows each when it is done, and writes the files that were asked for. Returns the exit code of the
// first run that fails, having shown why.
ExitCode reproduce_convergence(const ConvergenceRequest& request, const Resolver& resolver, const JobRunner& runner,
                               Console& console);

}  // namespace syncopate::experiments
