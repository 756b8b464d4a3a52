// ProcessIdentity: identities on the control connection. Each process proves itself with a CURVE key of its own, which
// is derived from the run's secret, its role and rank, and its incarnation; the coordinator has one more. A message
// belongs to the process that has proved its key on that connection, whatever the message claims.
#pragma once

#include <string>

#include "common/transport/run_keys.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

struct ProcessIdentity {
  Role role = Role::kWorker;
  int rank = 0;
  int incarnation = 0;  // how often the process has been restarted
};

// Returns, for example, "worker-1/0".
std::string text_of(const ProcessIdentity& process);

RunKeys::Pair control_key(const RunKeys& keys, const ProcessIdentity& process);
RunKeys::Pair coordinator_key(const RunKeys& keys);

}  // namespace syncopate::experiments
