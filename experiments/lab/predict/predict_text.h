// What `run_experiment predict` prints. Pure, but for the runs of --simulate.
#pragma once

#include <string>

#include "experiments/lab/predict/predict_request.h"
#include "experiments/lab/run/run_job.h"

namespace syncopate::experiments {

// A row for each size and way to exchange: the step's time, its throughput, the efficiency (against as many workers
// that exchange nothing); with --simulate also the step as `run` simulates it, and how far the form is from that. Fails
// where predict_step and simulated_step do.
Result<std::string> predict_text(const PredictRequest& request, const JobRunner& run);

}  // namespace syncopate::experiments
