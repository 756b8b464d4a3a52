// --tune-rate: tries learning rates for each row of a comparison, so that each is measured at its own best one.
//
// A trial is the whole job, since a shorter job has another best rate. Trials use none of the seeds that the comparison
// measures with, so that a rate chosen by luck is not measured with the same luck. Rates are judged on the test set,
// for all rows alike: the comparison shows how rows compare at their best rates, and not how well a rate can be chosen
// without a test set.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/cluster/exit_code.h"
#include "experiments/config/rate_grid.h"
#include "experiments/lab/compare/planned_run.h"
#include "experiments/lab/compare/row_runner.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

struct RateChoice {
  std::size_t best = 0;  // index of the best trial
  // whether it is the lowest or the highest rate tried: a better one may lie beyond it
  bool is_lowest = false, is_highest = false;
};

// Chooses among the trials of one row, given by ascending rate. The better trial is the one that diverged for fewer
// seeds; then the one with the higher mean quality at its end, then with the lower mean loss, then with the lower rate.
// Empty if all have diverged for all seeds.
std::optional<RateChoice> choose_rate(std::span<const RateTrial> trials);

struct RateTuning {
  RateGrid grid;
  RateRule rule = RateRule::kPerSample;
  std::int64_t reference_samples = 1;
  int rounds = 1;      // rounds of the comparison, whose seeds are not tried
  std::string folder;  // where the results of the trials are written
};

// Returns how many seeds each rate is tried with: as many as there are rounds, but at most 3.
int seeds_a_trial(int rounds);

struct TunedRates {
  ExitCode exit = ExitCode::kSuccess;
  std::vector<std::size_t> diverged;  // rows that diverged at all rates
};

// Tries all rates of the grid for all rows, gives each row the best (choose_rate), and adds trials and notes to
// `report`. Ends with the first run that does not succeed: `exit` is then its exit code, and its verdict becomes the
// report's outcome.
TunedRates tune_rates(const RateTuning& tuning, std::vector<PlannedRun>& runs, RowRunner& runner, Console& console,
                      ComparisonReport& report);

}  // namespace syncopate::experiments
