// Which messages a process may send to the coordinator. Pure.
#pragma once

#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

// Returns whether a process of this role may send a message of this kind. No process may send a message without a kind.
bool may_send(Role role, control::ToCoordinator::KindCase kind);

}  // namespace syncopate::experiments
