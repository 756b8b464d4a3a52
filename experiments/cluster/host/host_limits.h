// HostLimits: what a host lets a process of a run have. It is sent as one line of JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate::experiments {

struct HostLimits {
  int cores_online = 0;                      // of the host, of which the process may run on some (Environment::cores)
  std::optional<double> core_quota;          // how many cores' time its control group has; none: all
  std::int64_t descriptors = 0;              // open files; the hard limit
  std::optional<std::int64_t> locked_bytes;  // of memory; none: any amount
  std::string interface;                     // by which it reaches the coordinator
  int mtu = 0;                               // of that; 0: not known
  std::string gpu_driver;                    // NVIDIA's version; empty: none is loaded
};

// Reads them of this process. `interface` may be empty.
HostLimits limits_here(const std::string& interface);

std::string to_json_line(const HostLimits& limits);
// Reads what to_json_line() returns. Fails with data loss for anything else.
Result<HostLimits> parse_host_limits(std::string_view line);

}  // namespace syncopate::experiments
