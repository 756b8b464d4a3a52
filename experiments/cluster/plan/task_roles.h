// What each of the tasks becomes that somebody else has started: workers and servers of the run. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/cluster/plan/job_plan.h"
#include "experiments/config/started_by/task_place.h"

namespace syncopate::experiments {

// Returns the cluster that has each task as a host with one slot. Servers, then standbys, take the last free task of
// each host in turn, unless `roles` says where they are; workers take the others, in order. `tasks` are by rank, as
// many as the run has workers, servers and standbys.
Cluster cluster_of_tasks(const ResolvedRun& config, const std::string& coordinator, const std::vector<PlanHost>& tasks,
                         const std::optional<FixedRoles>& roles);

}  // namespace syncopate::experiments
