// carry_out: has a planned run carried out where its configuration says: by processes on hosts, ours or a program of
// the person's own, or by a simulated cluster.
#pragma once

#include <optional>
#include <string>

#include "common/param_layout.h"
#include "experiments/cluster/coordinator/coordinator.h"
#include "experiments/cluster/coordinator/interrupts.h"
#include "experiments/cluster/namespaces/namespace_hosts.h"
#include "experiments/cluster/simulated/solo_times.h"
#include "experiments/lab/report/summary_json.h"

namespace syncopate::experiments {

struct RunToCarryOut {
  const ResolvedRun& config;
  const JobPlan& plan;
  const CoordinatorOptions& options;
  const ParamLayout& layout;
  const Cluster& cluster;                // that the plan is for
  std::string log_directory;             // must exist
  NamespaceHosts* namespaces = nullptr;  // the hosts, where the configuration says that they are namespaces
};

// Returns when all processes have ended. `solo` serves all runs of a program, so that those that are compared compute
// for the same time. For a simulated run, adds to `facts` what its summary says of that.
Result<RunOutcome> carry_out(const RunToCarryOut& run, SoloTimes& solo, RunObserver& observer, Interrupts& interrupts,
                             std::optional<SimulationFacts>& facts);

}  // namespace syncopate::experiments
