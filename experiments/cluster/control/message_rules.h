// Which messages a process may send to the coordinator. Pure.
#pragma once

#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

// Whether a process of this role has any reason to send a message of this kind. A message of no kind, nobody may.
bool may_send(Role role, control::ToCoordinator::KindCase kind);

}  // namespace syncopate::experiments
