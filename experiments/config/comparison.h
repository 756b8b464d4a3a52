// The runs of `compare`: one job in several modes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "experiments/config/rules/rate_rule.h"
#include "experiments/config/run_request.h"

namespace syncopate::experiments {

inline constexpr std::string_view kUsualModes = "local,allreduce,ps:sync,ps:async";
// The same of a program of the person's own, whose batches one worker alone could not train.
inline constexpr std::string_view kUsualModesOfCommand = "allreduce,ps:sync,ps:async";

// In place of a list: all of these that the job can run; what it cannot is left out, with the reason.
inline constexpr std::string_view kEveryMode = "all";
inline constexpr std::string_view kAllModes =
    "local,allreduce,allreduce:sync-every:8,allreduce:gossip,allreduce:gossip-async,allreduce:pipeline:2,"
    "allreduce:tensor:2,sharded:1,sharded:2,sharded:3,sharded:on-demand,hybrid,"
    "ps:sync,ps:softsync:2,ps:bounded:4,ps:dynamic:2:8,ps:async,ps:async:pipeline:2,ps:local-sgd:8,ps:easgd:8";

inline constexpr std::string_view kLikeMode = "like:";  // before a preset's name

// Rounds until the verdict is clear, instead of a number of them.
struct AutoRounds {
  double margin = 0.02;           // a difference that does not matter, as a part of the throughput
  std::optional<double> seconds;  // of the command, at most; none: as long as it takes
};

struct ComparedRun {
  std::string label;  // the name of its results: "ps:bounded:4", "ps:bounded:4 batch-size=32"
  RunRequest config;  // checked
  std::string mode;   // as given in --modes: "ps:bounded:4"
  std::vector<std::pair<std::string, std::string>> values;  // the varied options that have an effect: {name, value}
  double base_rate = 0;  // learning rate for updates of the comparison's reference; 0 before apply_rate_rule
};

// Returns how the run divides its model as an entry of `modes` has it behind the mode: "pipeline:4", "tensor:2" or
// "pipeline:2:tensor:2"; empty if it does not.
std::string division_of(const RunSettings& config);

// Returns one run for each entry of `modes`, with `base` for everything else. Entries are separated by commas: a mode,
// or a mode and a way of it, as in allreduce:ring, allreduce:tensor:4, sharded:3, sharded:on-demand, ps:bounded:4 and
// ps:async:pipeline:2,// or like:PRESET. `local` trains one worker with the batch of all workers together, so that its
// curve is that of the synchronous modes. Stragglers, faults and a shaped link do not apply to it. allreduce:mpi is
// launched by mpirun.
Result<std::vector<ComparedRun>> comparison_runs(const RunRequest& base, const std::string& modes);

// Fails with invalid argument for an entry of `modes` that is none of these, whatever the rest of a run is.
Status check_modes(const std::string& modes);

// Returns the number of samples in one synchronous update of all workers. The rate rule relates learning rates to it.
// `base` is what the runs share, with the first value of each varied option.
std::int64_t reference_samples(const RunRequest& base);

// Programs of the person's own have their own rates. Sets each other run's learning rate to the one that `rule` derives
// from the one that the run was given, or else from the usual one of its optimizer. These are right for updates of
// `reference` samples.
void apply_rate_rule(std::vector<ComparedRun>& runs, RateRule rule, std::int64_t reference);

}  // namespace syncopate::experiments
