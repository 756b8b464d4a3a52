// The program that `run_experiment doctor` runs on each host, through the remote shell and below a guard. It says what
// the host is, and then does what it is told, a line of JSON each, on standard input; answers go to standard output.
//   syncopate --doctor-agent --towards=ADDRESS [--gpus]
//
//   first line in         the keys of this examination (RunKeys)
//   first lines out       a HostReport, HostLimits
//   {"clock": true}       {"wall_ns": 1795536759000000000}
//   {"pair": "0-1", "rank": 0, "sending_ms": 250, "limit_ms": 5000}
//                         {"address": "…"}, of the endpoint; then {"members": ["…", "…"]} comes in, or {"off": true};
//                         {"latency_us": 41.2, "bytes_per_second": 117e6} or {"failed": "large messages: …"}
#pragma once

#include <string>
#include <vector>

namespace syncopate::experiments {

// Returns the arguments: whether to look for GPUs, and the address of the one who asks.
std::vector<std::string> doctor_agent_arguments(bool with_gpus, const std::string& towards);

bool is_doctor_agent_command_line(int argc, const char* const* argv);

// Ends with its standard input. Returns the exit code.
int doctor_agent_main(int argc, const char* const* argv);

}  // namespace syncopate::experiments
