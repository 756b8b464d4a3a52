// Which faults --fault may ask for under a configuration. Pure.
#pragma once

#include <cstdint>

#include "common/status.h"
#include "experiments/config/fault_schedule.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// Returns which processes the faults of a run may affect. A worker makes `total_steps` steps; 0 if that is not known
// yet. Requires that all other rules have accepted `config`.
FaultScene fault_scene_of(const ResolvedRun& config, std::int64_t total_steps);

// Fails if a fault is impossible, saying what is wrong and what would be right. The parameters are those of
// fault_scene_of.
Status validate_faults(const ResolvedRun& config, std::int64_t total_steps);

}  // namespace syncopate::experiments
