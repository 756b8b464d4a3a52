// What the coordinator does with a message of a process before it believes it: which kinds the process may send, and
// texts that are safe to show. The processes may be on other hosts, or may not be what they claim. Pure.
#pragma once

#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

// Returns whether a process of this role may send a message of this kind. No process may send a message without a kind.
bool may_send(Role role, control::ToCoordinator::KindCase kind);

// Makes every text of the message printable, before any of it reaches a terminal, a log or a page
// (common/text/printable_text.h), and at most as long as a path may be. Texts that are compared or parsed and never
// shown stay unchanged: names of runs and of rendezvous groups, and parts of manifests.
void make_printable(control::ToCoordinator& message);

}  // namespace syncopate::experiments
