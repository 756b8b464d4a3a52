// Placement: where a run's workers compute. Pure: what the machines have is given.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/device/gpu_inventory.h"
#include "common/status.h"
#include "experiments/config/comparison.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

struct Machine {
  bool gpu_program = false;     // the executable for GPUs was built
  std::vector<Gpu> gpus;        // that the driver shows
  std::string why_no_gpu = {};  // where it shows none
};

// Those that a run may use.
struct Machines {
  Machines(Machine machine) : here(std::move(machine)) {}  // all on one

  Machine here;                   // the coordinator's
  std::vector<Machine> of_hosts;  // of --hosts, in its order; empty without it
};

// Settles --device=auto, and refuses, saying what was found, what these machines cannot do. What has no GPU to share
// shares none. `config` is one that validate() accepts.
Result<RunConfig> place(RunConfig config, const Machines& machines);

// The same for all runs of a comparison together: GPUs where every run has them, else the processor; what differs is
// the mode alone.
Status place_together(RunConfig& base, std::vector<ComparedRun>& runs, const Machines& machines);

}  // namespace syncopate::experiments
