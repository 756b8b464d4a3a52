// The simulated cluster: the coordinator and the processes of a run as actors of one world. They are the same roles and
// strategies as on real hosts; time, threads, the wire and the control connections are the world's.
//
// What takes virtual time: messages, by the network model; computing, updates, sums and codecs, by the run's compute
// model; stragglers' delays; control messages, a constant latency. Everything else takes none: evaluation, reading
// data.
#pragma once

#include <string>

#include "experiments/cluster/coordinator/coordinator.h"
#include "experiments/cluster/coordinator/interrupts.h"
#include "experiments/cluster/simulated/simulated_host.h"

namespace syncopate::experiments {

// Carries out the run in virtual time and returns when all its processes have ended. Where a phantom trains, `config`
// must be scaled down as it is (scaled_down). `options` are as for coordinate(). What processes log goes to files in
// `log_directory`, which must exist. The observer is called in virtual time.
Result<RunOutcome> simulate(const ResolvedRun& config, const JobPlan& plan, const CoordinatorOptions& options,
                            const SimulatedCompute& compute, const std::string& log_directory, RunObserver& observer,
                            Interrupts& interrupts);

}  // namespace syncopate::experiments
