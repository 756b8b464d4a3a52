// The program that another host runs before a run, so that the coordinator learns whether it can take part. It prints a
// HostReport.
//   syncopate --probe --towards=ADDRESS [--gpus]
#pragma once

#include <string>
#include <vector>

namespace syncopate::experiments {

// Returns the arguments: whether to look for GPUs, and the coordinator's address.
std::vector<std::string> probe_arguments(bool with_gpus, const std::string& towards);

bool is_probe_command_line(int argc, const char* const* argv);

// Returns the exit code. Ends by itself after half a minute, in case a driver hangs.
int probe_main(int argc, const char* const* argv);

}  // namespace syncopate::experiments
