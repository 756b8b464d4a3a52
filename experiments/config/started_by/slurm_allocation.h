// SlurmAllocation: the hosts of an allocation of Slurm's, as the script of sbatch and the shell of salloc find them in
// the environment. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/launch/task_place.h"
#include "common/status.h"
#include "experiments/config/host_list.h"
#include "experiments/config/options/given_options.h"

namespace syncopate::experiments {

// Returns the hosts of the allocation, each with as many slots as it has tasks; the one where this process runs is
// localhost. Fails with invalid argument if there is no allocation.
Result<std::vector<HostSlots>> slurm_hosts(const Variables& environment);

// For --launcher=slurm: adds to `given` the hosts, with slots for workers alone, where servers take tasks in turn, and
// the number of workers. Does nothing for another launcher. Fails with invalid argument if the run does not fit.
Status settle_slurm(const Variables& environment, GivenOptions& given);

// Returns the words that run a command on a host of the allocation, in place of a remote shell; its name and the words
// of a shell come behind them.
std::string slurm_shell();

}  // namespace syncopate::experiments
