// Asks other hosts whether they can take part in a run, through the remote shell that will also start the processes:
// they must be reachable, and have this program, built from the same sources.
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
  Duration timeout{};   // for all hosts together
};

// Returns a report for each host, in order. All are asked at once. Fails with invalid argument, naming the problem of
// each host that cannot take part.
Result<std::vector<HostReport>> probe_hosts(const ProbeOptions& options);

}  // namespace syncopate::experiments
