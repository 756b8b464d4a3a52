// What `run_experiment reproduce` shows of tables, as words. Pure.
#pragma once

#include <string>
#include <vector>

#include "prediction/reproduction/reproduction.h"

namespace syncopate::experiments {

const char* name_of(prediction::CellUse use);  // "predicted", "calibrated" or "left out"

// Each cell with its error, a row each; the first row names the columns.
std::vector<std::vector<std::string>> reproduction_rows(const prediction::Reproduction& table);

// Returns "4 predicted cells: median error 2.4 %, worst 4.0 %; the bar is 5.0 % / 10.0 %, which it holds."
std::string reproduction_errors(const prediction::Reproduction& table);

// Several tables in a row each: their errors beside their bars; the first row names the columns.
std::vector<std::vector<std::string>> summary_rows(const std::vector<prediction::Reproduction>& tables);

// One table for a terminal: what was measured, by whom, how it is predicted, what was calibrated and left out, its
// cells and its errors.
std::string reproduction_text(const prediction::Reproduction& table);

}  // namespace syncopate::experiments
