// The runs of `compare`: one job in several modes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

inline constexpr std::string_view kUsualModes = "local,allreduce,ps:sync,ps:async";

struct ComparedRun {
  std::string label;  // what its results are called: "ps:bounded:4", "ps:bounded:4 batch-size=32"
  RunConfig config;   // validated, not resolved
  std::string mode;   // as given in --modes: "ps:bounded:4"
  std::string value;  // of the option that is varied; empty for none
};

// One run for each entry of `modes` (comma-separated: local, allreduce, allreduce:ring, allreduce:mpi,
// allreduce:sync-every:k, allreduce:gossip or allreduce:gossip:k, ps:sync, ps:bounded:k, ps:async), with `base` for all
// else. `local` trains one worker with the batch of all workers together, so that its curve is that of the synchronous
// modes; stragglers and a shaped link do not concern it. allreduce:mpi is launched by mpirun.
Result<std::vector<ComparedRun>> comparison_runs(const RunConfig& base, const std::string& modes);

}  // namespace syncopate::experiments
