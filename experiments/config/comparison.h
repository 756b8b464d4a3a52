// The runs of `compare`: one job in several modes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "experiments/config/rules/rate_rule.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

inline constexpr std::string_view kUsualModes = "local,allreduce,ps:sync,ps:async";

struct ComparedRun {
  std::string label;  // what its results are called: "ps:bounded:4", "ps:bounded:4 batch-size=32"
  RunConfig config;   // validated, not resolved
  std::string mode;   // as given in --modes: "ps:bounded:4"
  std::vector<std::pair<std::string, std::string>> values;  // of the varied options that have an effect: {name, value}
  double base_rate = 0;  // for updates of the comparison's reference; 0 before apply_rate_rule
};

// One run for each entry of `modes` (comma-separated: local, allreduce, allreduce:ring, allreduce:mpi,
// allreduce:sync-every:k, allreduce:gossip or allreduce:gossip:k, allreduce:gossip-async(:k), ps:sync, ps:bounded:k,
// ps:async), with `base` for all else. `local` trains one worker with the batch of all workers together, so that its
// curve is that of the synchronous modes; stragglers, faults and a shaped link do not concern it. allreduce:mpi is
// launched by mpirun.
Result<std::vector<ComparedRun>> comparison_runs(const RunConfig& base, const std::string& modes);

// Samples in a synchronous update of all workers of the comparison's job: what the rate rule relates rates to. `base`
// is what its runs share, with the first value of each option that is varied.
std::int64_t reference_samples(const RunConfig& base);

// Gives the run `rate`, for updates of `reference` samples, as `rule` has it: its learning rate becomes the one that it
// trains with.
void set_rate(ComparedRun& run, RateRule rule, double rate, std::int64_t reference);

// The same for each run with the rate that it has been given, or its optimizer's usual one.
void apply_rate_rule(std::vector<ComparedRun>& runs, RateRule rule, std::int64_t reference);

}  // namespace syncopate::experiments
