// What `run_experiment predict` prints. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/predict/predicted_rows.h"

namespace syncopate::experiments {

// A table of each exchange at each size, and what it is.
std::string predict_text(const PredictRequest& request, const std::vector<PredictedRow>& rows);

// Returns the table, its heading first.
std::vector<std::vector<std::string>> predict_rows(const PredictRequest& request,
                                                   const std::vector<PredictedRow>& rows);

}  // namespace syncopate::experiments
