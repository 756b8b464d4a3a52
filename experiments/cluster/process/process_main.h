// The main function of a launched process: --role=R --rank=N --run=ID --rendezvous=ADDRESS [--gpu=I] [--incarnation=N]
// [--keys-shared]. The run's secret is the line on its standard input, or is shared with it (shared_keys.h).
#pragma once

#include "experiments/cluster/process/accelerator.h"

namespace syncopate::experiments {

// Returns whether this command line is a launched process's.
bool is_process_command_line(int argc, const char* const* argv);

// Returns the process's exit code. `accelerator` is null in the program for the CPU.
int process_main(int argc, const char* const* argv, const Accelerator* accelerator);

}  // namespace syncopate::experiments
