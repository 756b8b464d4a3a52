// What --fault may ask for under a configuration. Pure.
#pragma once

#include <cstdint>

#include "common/status.h"
#include "experiments/config/fault_schedule.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

// Whom the faults of a run may strike; a worker makes `total_steps`, 0 where that is not known yet. `config` is one
// that all other rules have accepted.
FaultScene fault_scene_of(const RunConfig& config, std::int64_t total_steps);

// Faults that cannot be: what is wrong and what would be right. As above.
Status validate_faults(const RunConfig& config, std::int64_t total_steps);

}  // namespace syncopate::experiments
