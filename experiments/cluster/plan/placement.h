// Placement: on which devices a run's workers compute, and with that what a request comes to. Pure: the machines are
// given.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/device/gpu_inventory.h"
#include "common/status.h"
#include "experiments/config/comparison.h"
#include "experiments/config/resolution.h"

namespace syncopate::experiments {

struct Machine {
  bool gpu_program = false;     // whether the executable for GPUs was built
  std::vector<Gpu> gpus;        // those that the driver reports
  std::string why_no_gpu = {};  // set if it reports none
};

// The machines that a run may use.
struct Machines {
  Machines(Machine machine) : here(std::move(machine)) {}  // all on one machine

  Machine here;                   // the coordinator's
  std::vector<Machine> of_hosts;  // those of --hosts, in its order; empty without it
  std::string listen_address{};   // where other hosts reach the coordinator's; empty without others
};

// Returns what the machines decide of a request, --device=auto above all. Fails if they cannot do what was asked for,
// saying what was found. If there is no GPU to share, sharing is switched off. `request` must be one that check()
// accepts.
Result<Placement> place(const RunRequest& request, const Machines& machines);

// Returns what runs on these machines: place(), then resolve(). `stamp` is from calendar_stamp().
Result<ResolvedRun> resolve_on(const Machines& machines, const RunRequest& request, const std::string& stamp);

// Does the same for all runs of a comparison together: they use GPUs if every run can, else the processor, so that only
// the mode differs. Sets that device in `base` and `runs`. Returns one run for each of `runs`.
Result<std::vector<ResolvedRun>> resolve_together(const Machines& machines, RunRequest& base,
                                                  std::vector<ComparedRun>& runs, const std::string& stamp);

}  // namespace syncopate::experiments
