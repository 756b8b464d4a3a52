// run_command: carries out a run whose workers are a program of the person's own. It starts one process for each, reads
// what they tell of their steps (common/step_file.h), and shows what rank 0 prints. In a run on several hosts, a relay
// (relay.h) stands above each of them, also on this host, and time stamps are corrected by the difference of clocks.
//
// A program that never tells of a step (it does not use syncopate, or ends before its first step) fails the run. When
// the run has ended, whatever a process has left in its process group is killed.
#pragma once

#include <string>

#include "experiments/cluster/coordinator/coordinator.h"
#include "experiments/cluster/coordinator/interrupts.h"

namespace syncopate::experiments {

// Returns when all processes of `plan` have ended. `program` is this executable; the processes' output and, while they
// run, their files of steps lie in `log_directory`. Fails if a process cannot be started.
Result<RunOutcome> run_command(const ResolvedRun& config, const JobPlan& plan, const std::string& program,
                               const std::string& log_directory, RunObserver& observer, Interrupts& interrupts);

}  // namespace syncopate::experiments
