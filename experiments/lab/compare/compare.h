// compare: runs one job in several modes, side by side.
//
// First it proves that the comparison is fair (equality.h). With --tune-rate it then tries learning rates for each row.
// Then come --repeat rounds, each of which runs every row once, in a random order, so that a slow period of the machine
// affects all of them. Round r of every row has the seed of the job + r. The rounds that are finished when it ends, for
// whatever reason, are shown and written. Asked for again with the same --output it goes on: runs that are complete are
// kept (kept_runs.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "experiments/cluster/exit_code.h"
#include "experiments/config/comparison.h"
#include "experiments/config/rate_grid.h"
#include "experiments/config/run_request.h"
#include "experiments/lab/compare/planned_run.h"
#include "experiments/lab/compare/row_runner.h"
#include "prediction/host_prices.h"

namespace syncopate::experiments {

// What to compare: what the runs share, as it was asked for, and the runs.
struct ComparisonJob {
  RunRequest base;
  std::vector<PlannedRun> runs;            // with the learning rates that they train with
  std::vector<std::string> varied = {};    // names of the varied options
  std::vector<std::string> left_out = {};  // a line for each combination that cannot run
  RateRule rate_rule = RateRule::kPerSample;
  std::int64_t reference_samples = 1;                 // samples per update of the rate rule's reference
  std::optional<RateGrid> tune_rate = {};             // none: rows train with the rates that they have
  std::string command = {};                           // as it was typed
  std::optional<AutoRounds> auto_rounds = {};         // with base.repeat as the most; none: there are that many
  std::string name = "compare";                       // or study; ends the name of the usual folder for results
  std::optional<prediction::HostPrices> prices = {};  // of a process, for an hour
  bool shows_tables = true;                           // at the end; otherwise the files alone have them
  bool plots = false;                                 // draws the charts below the tables
};

// Told the runs that a comparison is going to ask its runner for, in order, and its folder: a runner may begin them
// before. Fails as they would.
using RunsAhead = std::function<Status(const std::vector<ResolvedRun>& runs, const std::string& folder)>;

// Writes a folder for each run and the files of the comparison beside them, again after each round. `resolver` resolves
// the runs of the equality check, on the machines that `job.runs` were resolved on. A run that fails
// ends the comparison with that run's exit code. If --fault ended the run, only its row is left out from then on.
ExitCode compare(const ComparisonJob& job, const Resolver& resolver, const JobRunner& runner, const Clock& clock,
                 const RunsAhead& ahead = {});

// Returns what `compare --dry-run` shows: the rows with their learning rates, the combinations left out, and the order
// of the runs.
std::string comparison_plan(const ComparisonJob& job);

// Returns the rows 0 .. `rows` - 1 in the order in which round `round` runs them. The order is drawn from the seed,
// each order with the same probability, so that over the rounds neither a row's place nor its neighbour favours it
// (Fisher and Yates' shuffle; Knuth, The Art of Computer Programming 2, 3.4.2, algorithm P).
std::vector<std::size_t> round_order(std::size_t rows, std::uint64_t seed, std::size_t round);

}  // namespace syncopate::experiments
