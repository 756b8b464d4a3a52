// What `run_experiment predict --measured` prints. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/predict/fitted_ways.h"

namespace syncopate::experiments {

inline constexpr const char* kFitted = "Fitted to what was measured; nominally";

std::string fitted_text(const ScaledJob& job, const MeasuredRuns& measured, const std::vector<FittedWay>& ways);

// Returns the table, its heading first.
std::vector<std::vector<std::string>> fitted_rows(const ScaledJob& job, const std::vector<FittedWay>& ways);

// Returns the sentences below it: what was fitted, and how far that is to be believed.
std::vector<std::string> fitted_sentences(const ScaledJob& job, const MeasuredRuns& measured,
                                          const std::vector<FittedWay>& ways);

}  // namespace syncopate::experiments
