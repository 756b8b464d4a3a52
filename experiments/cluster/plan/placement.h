// Placement: on which devices a run's workers compute. Pure: the machines are given.
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
  bool gpu_program = false;     // whether the executable for GPUs was built
  std::vector<Gpu> gpus;        // those that the driver reports
  std::string why_no_gpu = {};  // set if it reports none
};

// The machines that a run may use.
struct Machines {
  Machines(Machine machine) : here(std::move(machine)) {}  // all on one machine

  Machine here;                   // the coordinator's
  std::vector<Machine> of_hosts;  // those of --hosts, in its order; empty without it
};

// Decides --device=auto. Fails if these machines cannot do what was asked for, saying what was found. If there is no
// GPU to share, sharing is switched off. `config` must be one that validate() accepts.
Result<RunConfig> place(RunConfig config, const Machines& machines);

// Does the same for all runs of a comparison together: they use GPUs if every run can, else the processor, so that only
// the mode differs.
Status place_together(RunConfig& base, std::vector<ComparedRun>& runs, const Machines& machines);

}  // namespace syncopate::experiments
