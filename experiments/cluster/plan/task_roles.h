// What each of the tasks becomes that somebody else has started: workers and servers of the run. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/launch/task_place.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

// Returns the cluster that has each task as a host with one slot. Servers, then standbys, take the last free task of
// each host in turn, unless `roles` says where they are; workers take the others, host by host, in order on each.
// `tasks` are by rank, as many as the run has workers, servers and standbys.
Cluster cluster_of_tasks(const ResolvedRun& config, const std::string& coordinator, const std::vector<PlanHost>& tasks,
                         const std::optional<FixedRoles>& roles);

// Returns the hosts of that cluster, each with as many slots as it has workers: in the order of these, then those that
// have servers alone. The coordinator's is "localhost".
std::vector<HostSlots> hosts_of(const Cluster& cluster);

}  // namespace syncopate::experiments
