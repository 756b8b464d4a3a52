// `run_experiment profile`: measures a model's step on this machine and writes it as a profile.
#pragma once

#include <string>

#include "common/status.h"
#include "experiments/config/resolved_run.h"
#include "prediction/model_profile.h"

namespace syncopate::experiments {

// Measures the run's model and writes the file config.output, which must not be there. Returns what a person is to see.
// Fails as measure_profile() and write_whole_file() do.
Result<std::string> profile_model(const ResolvedRun& config);

// Returns the model's step, tensor by tensor, in lines. The profile must have times. Pure.
std::string profile_text(const prediction::ModelProfile& profile);

// Fails with invalid argument if there is something at the path.
Status check_free(const std::string& path);

}  // namespace syncopate::experiments
