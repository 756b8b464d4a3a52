// How many file descriptors a run needs, so that a run that cannot have them is refused before it is launched. Pure.
#pragma once

#include <cstdint>

#include "common/status.h"
#include "experiments/cluster/plan/job_plan.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// Return upper bounds, with a reserve: for run_experiment itself, and for the process that needs the
// most.
std::int64_t descriptors_of_coordinator(const JobPlan& plan);
std::int64_t descriptors_of_process(const ResolvedRun& config);

// Returns how many descriptors of shared memory may be on their way between the run's processes at the same time. All
// of a user together may have as many as one process may have open (unix(7), ETOOMANYREFS), but for root.
std::int64_t descriptors_on_their_way(const ResolvedRun& config);

// Fails with invalid argument if a process may have at most `limit` descriptors and this run needs more.
Status check_descriptors(const ResolvedRun& config, const JobPlan& plan, std::int64_t limit, bool is_root);

}  // namespace syncopate::experiments
