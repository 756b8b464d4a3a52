// What another host runs before a run, so that the coordinator learns whether it can take part: it prints a HostReport.
//   syncopate --probe --towards=ADDRESS [--gpus]
#pragma once

#include <string>
#include <vector>

namespace syncopate::experiments {

// The arguments: whether GPUs are to be looked for, and the coordinator's address.
std::vector<std::string> probe_arguments(bool with_gpus, const std::string& towards);

bool is_probe_command_line(int argc, const char* const* argv);

// Returns the exit code. Ends by itself after half a minute, should a driver hang.
int probe_main(int argc, const char* const* argv);

}  // namespace syncopate::experiments
