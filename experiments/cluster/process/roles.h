// What a process does in each role, from its configuration to its last message. Each function returns when its part is
// done.
#pragma once

#include "common/activity.h"
#include "common/status.h"
#include "common/trace/tracer.h"
#include "experiments/cluster/control/control_client.h"
#include "experiments/cluster/process/accelerator.h"
#include "experiments/cluster/process/process_host.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// Where a process's data endpoints listen, and with which keys.
struct DataSockets {
  RunKeys keys;
  std::string address = "127.0.0.1";
  bool between_hosts = false;
};

struct RoleContext {
  const ResolvedRun& config;
  const std::string& run_id;
  int rank;  // within the role
  ProcessHost& host;
  ControlClient& control;
  Activity& activity;
  DataSockets sockets;
  const Accelerator* accelerator = nullptr;
  int gpu = 0;  // the GPU that a worker computes on, with an accelerator
  Role role = Role::kWorker;
  Tracer* tracer = nullptr;  // set by take_part() in a run that traces
};

// Does what the context's role does, and tells the coordinator how it has ended. Returns when that is done.
Status take_part(RoleContext context);
// Tells the coordinator what this process has traced, unless it has been told. No thread may trace any more.
void hand_in_trace(const RoleContext& context);

// Trains. Worker 0 begins with the initial weights.
Status run_worker(const RoleContext& context);
// Serves its shards, with one thread for each.
Status run_server(const RoleContext& context);
// Evaluates snapshots on the test set until there are no more.
Status run_evaluator(const RoleContext& context);

}  // namespace syncopate::experiments
