// Asks other hosts, through the remote shell by which processes will be started there, whether they can take part in a
// run: whether they can be reached, and have this program, of the same sources.
#pragma once

#include <string>
#include <vector>

#include "common/clock.h"
#include "experiments/cluster/host/host_report.h"
#include "experiments/config/remote_shell.h"

namespace syncopate::experiments {

struct ProbeOptions {
  RemoteShell shell;
  std::vector<std::string> hosts;
  bool with_gpus = false;
  std::string towards;  // the coordinator's address
  Duration timeout{};   // for all together
};

// A report for each host, in order. All are asked at once. Invalid argument, with what is wrong for each host that
// cannot take part.
Result<std::vector<HostReport>> probe_hosts(const ProbeOptions& options);

}  // namespace syncopate::experiments
