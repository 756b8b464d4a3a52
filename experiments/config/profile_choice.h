// A model of which only the profile is there: --model=profile:resnet50. It computes nothing; a simulated cluster lets
// the time of its step pass and sends as many bytes as it would.
#pragma once

#include <string>

#include "common/status.h"
#include "experiments/config/resolved_run.h"
#include "prediction/device_steps.h"
#include "prediction/model_profile.h"

namespace syncopate::experiments {

// Returns a profile by its name, or from a file whose name ends in .json. Fails with invalid argument for an unknown
// name, listing all, for a file that cannot be read and for one that is no profile; `option`, as in "--profile=", is
// what stood before the name.
Result<prediction::ModelProfile> open_profile(const std::string& option, const std::string& name_or_file);

// Returns the profile of a run's model. Requires is_profile(config). Fails as open_profile() does.
Result<prediction::ModelProfile> profile_of(const RunSettings& config);

// Returns the profile whose times the run's workers take, for batches of its own size. Requires that config.compute
// names one. Fails as open_profile() does, and for a profile without times, or with times of another model.
Result<prediction::ModelProfile> compute_profile_of(const ResolvedRun& config);

// Returns the typical step of the device that config.compute names. Requires that it names one. Fails as open_profile()
// does, and for a model of which no step on that device is known, listing those that are.
Result<prediction::TypicalStep> device_step_of(const ResolvedRun& config);

}  // namespace syncopate::experiments
