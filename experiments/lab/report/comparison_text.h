// A comparison as text for a terminal. Pure.
#pragma once

#include <string>

#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// Returns its tables (comparison_tables.h), and below them what a reader must know to trust them, one sentence a line.
std::string comparison_text(const ComparisonReport& report);

}  // namespace syncopate::experiments
