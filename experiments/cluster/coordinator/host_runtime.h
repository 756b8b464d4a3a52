// The ClusterRuntime of processes on this and other hosts: a launcher starts them, and they connect over ZeroMQ.
#pragma once

#include <memory>
#include <string>

#include "experiments/cluster/control/zmq_control_server.h"
#include "experiments/cluster/coordinator/cluster_runtime.h"
#include "experiments/cluster/coordinator/interrupts.h"
#include "experiments/cluster/launcher/launcher.h"

namespace syncopate::experiments {

struct HostRuntimeOptions {
  std::string program;        // the executable to launch
  std::string log_directory;  // must exist
  ListenOptions listen;
};

// Listens for the processes of `plan`. All that it refers to outlives the runtime, which kills what still lives when it
// is destroyed. Fails with internal if it cannot listen.
Result<std::unique_ptr<ClusterRuntime>> make_host_runtime(const JobPlan& plan, HostRuntimeOptions options,
                                                          Launcher& launcher, Interrupts& interrupts);

}  // namespace syncopate::experiments
