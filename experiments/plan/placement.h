// Placement: where a run's workers compute. Pure: what the machine has is given.
#pragma once

#include <string>
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

// Settles --device=auto, and refuses, saying what was found, what this machine cannot do. What has no GPU to share
// shares none. `config` is one that validate() accepts.
Result<RunConfig> place(RunConfig config, const Machine& machine);

// The same for all runs of a comparison together: GPUs where every run has them, else the processor; what differs is
// the mode alone.
Status place_together(RunConfig& base, std::vector<ComparedRun>& runs, const Machine& machine);

}  // namespace syncopate::experiments
