// The rows of `run_experiment predict` as files: values for programs, and a page for a browser. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/predict/predicted_rows.h"
#include "experiments/lab/report/flat_rows.h"

namespace syncopate::experiments {

std::vector<FlatRow> prediction_rows(const PredictRequest& request, const std::vector<PredictedRow>& rows);

// Returns prediction.json; `command` is what asked for it.
std::string prediction_json(const PredictRequest& request, const std::vector<PredictedRow>& rows,
                            const std::string& command);

// Returns report.html.
std::string prediction_html(const PredictRequest& request, const std::vector<PredictedRow>& rows,
                            const std::string& command);

}  // namespace syncopate::experiments
