// simulate_script: a run of a program of the person's own in virtual time. Its ranks compute real gradients, one after
// the other on this machine; the network and the servers are simulated, with the same strategies as ever.
#pragma once

#include "experiments/cluster/coordinator/coordinator.h"
#include "experiments/lab/run/carry_out.h"

namespace syncopate::experiments {

// Returns when the script has ended, or has made as many steps as the run asks for. Adds to `facts` how computing was
// timed, and how long the run really took.
Result<RunOutcome> simulate_script(const RunToCarryOut& run, SoloTimes& solo, RunObserver& observer,
                                   Interrupts& interrupts, SimulationFacts& facts);

}  // namespace syncopate::experiments
