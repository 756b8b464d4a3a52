// The rows of `run_experiment predict`: each exchange at each size.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/lab/predict/predict_request.h"
#include "experiments/lab/run/run_job.h"
#include "prediction/step_prediction.h"

namespace syncopate::experiments {

struct PredictedRow {
  int workers = 0;
  prediction::ExchangePlan plan;
  double step = 0;                  // seconds, by the closed form
  std::optional<double> simulated;  // seconds of the same step in virtual time, where one was asked for and is like it
};

// Fails where predict_step() and simulated_step() do.
Result<std::vector<PredictedRow>> predicted_rows(const PredictRequest& request, const JobRunner& run);

}  // namespace syncopate::experiments
