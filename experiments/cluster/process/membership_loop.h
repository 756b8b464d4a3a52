// The life of a process that several membership epochs may need: it takes part in one after the other.
#pragma once

#include <functional>

#include "common/clock.h"
#include "common/status.h"
#include "experiments/cluster/control/membership_epoch.h"
#include "experiments/cluster/process/roles.h"

namespace syncopate::experiments {

// Joins the newest membership epoch and calls `take_part` with it, again and again, until that returns ok or a failure
// after which the run does not go on, which is then returned. If no epoch follows a failure in time, that failure is
// returned. A failure that others do not know of is reported to the coordinator. `say_waiting` is called before each
// wait for an epoch, for the process's activity.
Status take_part_in_memberships(const RoleContext& context, const Clock& clock,
                                const std::function<void()>& say_waiting,
                                const std::function<Status(const MembershipEpoch&)>& take_part);

}  // namespace syncopate::experiments
