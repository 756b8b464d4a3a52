// What `run_experiment advise` prints, after the runs in virtual time that it asks.
#pragma once

#include <string>

#include "experiments/lab/predict/advise_request.h"
#include "experiments/lab/run/run_job.h"

namespace syncopate::experiments {

// For each size a table of the best ways, the best first, what follows from them in sentences, and the command of each
// row. Fails where predict_step() and simulate_ways() do.
Result<std::string> advise_text(const AdviseRequest& request, const JobRunner& run);

}  // namespace syncopate::experiments
