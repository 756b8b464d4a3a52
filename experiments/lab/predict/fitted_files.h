// The rows of `run_experiment predict --measured` as files: values for programs, and a page for a browser. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/predict/fitted_ways.h"
#include "experiments/lab/report/flat_rows.h"

namespace syncopate::experiments {

std::vector<FlatRow> fitted_flat_rows(const ScaledJob& job, const std::vector<FittedWay>& ways);

// Returns prediction.json; `command` is what asked for it.
std::string fitted_json(const ScaledJob& job, const MeasuredRuns& measured, const std::vector<FittedWay>& ways,
                        const std::string& command);

// Returns report.html.
std::string fitted_html(const ScaledJob& job, const MeasuredRuns& measured, const std::vector<FittedWay>& ways,
                        const std::string& command);

}  // namespace syncopate::experiments
