// compare: one job in several modes, side by side.
//
// First it proves that the comparison is fair (equality.h). With --tune-rate it then tries learning rates for each row.
// Then come
// --repeat rounds, each of which runs every row once, in an order drawn for the round, so that a slow spell of the
// machine falls on all of them; round r of every row has the seed of the job + r. What was finished when it ends,
// however it ends, is shown and written.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "experiments/cluster/exit_code.h"
#include "experiments/config/comparison.h"
#include "experiments/config/rate_grid.h"
#include "experiments/lab/compare/row_runner.h"

namespace syncopate::experiments {

// What to compare: what the runs share, and the runs, all validated.
struct ComparisonJob {
  RunConfig base;
  std::vector<ComparedRun> runs;           // with the rates that they train with
  std::vector<std::string> varied = {};    // options
  std::vector<std::string> left_out = {};  // what cannot run, and is only told
  RateRule rate_rule = RateRule::kPerSample;
  std::int64_t reference_samples = 1;      // of the rate rule
  std::optional<RateGrid> tune_rate = {};  // none: rows train with the rates that they have
  std::string command = {};                // as it was typed
};

// Leaves a folder for each run and the files of the comparison beside them, anew after each round. A run that does not
// succeed ends it, with that run's exit code; where it was --fault that ended the run, its row alone is left out from
// then on.
ExitCode compare(const ComparisonJob& job, const JobRunner& runner, const Clock& clock);

// What `compare --dry-run` shows: the rows with their learning rates, what is left out, and the order of the runs.
std::string comparison_plan(const ComparisonJob& job);

}  // namespace syncopate::experiments
