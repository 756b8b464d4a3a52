// A run as a script for Slurm's sbatch. Pure.
#pragma once

#include <string>

#include "experiments/config/command_line.h"

namespace syncopate::experiments {

// Returns the script, which becomes the run's coordinator: `program` is this one's path, as all hosts have it. A run
// with checkpoints gets SIGTERM some time before its time limit, goes on when it is requeued or the script is submitted
// again, and has its results in a folder that is named for the job unless one is given. Requires line.submission to be
// for Slurm.
std::string slurm_script(const CommandLine& line, const std::string& program);

}  // namespace syncopate::experiments
