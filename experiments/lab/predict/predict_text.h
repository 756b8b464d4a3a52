// What `run_experiment predict` prints. Pure.
#pragma once

#include <string>

#include "experiments/lab/predict/predict_request.h"

namespace syncopate::experiments {

// A row for each size and way to exchange: the step's time, its throughput, the efficiency (against as many workers
// that exchange nothing) and what of the step is waiting. Fails where predict_step does.
Result<std::string> predict_text(const PredictRequest& request);

}  // namespace syncopate::experiments
