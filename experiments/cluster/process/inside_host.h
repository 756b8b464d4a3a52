// The workers of one host among those of a run, and what connects them in shared memory.
#pragma once

#include <memory>

#include "allreduce/collective/direct_collective.h"
#include "allreduce/schedule/schedule.h"
#include "common/clock.h"
#include "common/status.h"
#include "experiments/cluster/process/data_endpoint.h"
#include "experiments/cluster/process/roles.h"

namespace syncopate::experiments {

// Returns, for each host, the workers of the membership epoch that the plan places there, as indices into `workers`.
allreduce::RanksByHost ranks_by_host(const ResolvedRun& config, const std::vector<int>& workers);

// Connects this worker, of rank `assignment.rank` in `ranks_by_host`, in shared memory with the others of its host.
Result<std::unique_ptr<allreduce::DirectCollective>> connect_inside_host(const RoleContext& context,
                                                                         const RankAssignment& assignment,
                                                                         const allreduce::RanksByHost& ranks_by_host,
                                                                         TimePoint deadline);

}  // namespace syncopate::experiments
