// What `run_experiment advise` prints. Pure.
#pragma once

#include <string>

#include "experiments/lab/predict/advise_request.h"

namespace syncopate::experiments {

// For each size a table of the best ways, the best first, and what follows from them in sentences. Fails where
// predict_step() does.
Result<std::string> advise_text(const AdviseRequest& request);

}  // namespace syncopate::experiments
