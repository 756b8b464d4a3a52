// What `run_experiment reproduce` prints of a table. Pure.
#pragma once

#include <string>
#include <vector>

#include "prediction/reproduction/reproduction.h"

namespace syncopate::experiments {

// One table: what was measured, by whom, how it is predicted, what was calibrated and left out, each cell with its
// error, and the errors of those that were predicted.
std::string reproduction_text(const prediction::Reproduction& table);

// Several tables in a line each: their errors beside their bars.
std::string reproduction_summary(const std::vector<prediction::Reproduction>& tables);

}  // namespace syncopate::experiments
