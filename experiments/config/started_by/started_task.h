// The task that this process is, as its environment and --started-by say it: of a launcher's
// (common/launch/task_place.h), or of a platform that sets TF_CONFIG. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/launch/task_place.h"
#include "common/status.h"

namespace syncopate::experiments {

// "auto", "none", "slurm", "openmpi", "pmi", "torchrun", "tf-config"
const char* name_of(StartedBy value);
// Returns them all, as people list them.
std::string started_by_names();
// Fails with invalid argument for a name that is not among these.
Result<StartedBy> parse_started_by(std::string_view name);

// As task_place() with all parsers. Fails also if `by` names one whose variables are not there.
FoundPlace started_task(const Variables& environment, StartedBy by);

// TensorFlow's description of a cluster: TF_CONFIG, with addresses of chief, worker and ps, and the task's own role.
FoundPlace place_by_tf_config(const Variables& environment);

}  // namespace syncopate::experiments
