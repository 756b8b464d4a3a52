// A comparison as text for a terminal. Pure.
#pragma once

#include <string>

#include "experiments/report/comparison_report.h"

namespace syncopate::experiments {

// A row for each configuration, with ratios to the first.
std::string comparison_text(const ComparisonReport& report);

}  // namespace syncopate::experiments
