// Resolution: the only way from what was asked for to what will run. Pure.
#pragma once

#include <string>

#include "common/status.h"
#include "experiments/config/resolved_run.h"
#include "experiments/config/run_request.h"

namespace syncopate::experiments {

// What the machines of a run decide (cluster/plan/placement.h).
struct Placement {
  DeviceKind device = DeviceKind::kCpu;
  bool share_gpu = false;        // whether workers share a GPU
  std::string gpu{};             // worker 0's, as describe() of common/device/gpu_inventory.h; empty without
  std::string listen_address{};  // where other hosts reach this one; empty without others
};

// Returns what will run, with everything settled that the request has left open, so that the record shows it. The
// transport is shared memory on one host; between several hosts it is tcp for ps and sockets for allreduce. The
// collective is NCCL on GPUs, direct in shared memory unless the link is shaped, and a ring under asynchronous gossip,
// and where the state is sharded over other wires; otherwise the size of each bucket chooses it. `stamp`, from
// calendar_stamp(), names the output. Fails for combinations that cannot work, saying in one line what is wrong and
// what would be right.
Result<ResolvedRun> resolve(const RunRequest& request, const Placement& placement, const std::string& stamp);

// Returns what the request would come to on processors alone. What a person types is judged by it before any host is
// asked what it has. The rules need not accept it.
ResolvedRun presumed(const RunRequest& request);

// Fails as resolve() would for presumed(request), and for a device that the request rules out itself.
Status check(const RunRequest& request);

}  // namespace syncopate::experiments
