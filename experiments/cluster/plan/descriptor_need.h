// How many file descriptors a run needs, so that one that cannot have them is refused before it is launched. Pure.
#pragma once

#include <cstdint>

#include "common/status.h"
#include "experiments/cluster/plan/job_plan.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

// Upper bounds, with some to spare: of run_experiment itself, and of the process that needs the most. `config` has been
// through resolve().
std::int64_t descriptors_of_coordinator(const JobPlan& plan);
std::int64_t descriptors_of_process(const RunConfig& config);

// Invalid argument where a process may have no more than `limit` and this run needs more.
Status check_descriptors(const RunConfig& config, const JobPlan& plan, std::int64_t limit);

}  // namespace syncopate::experiments
