// The charts of a comparison. Pure.
#pragma once

#include <vector>

#include "experiments/report/chart.h"
#include "experiments/report/comparison_figures.h"
#include "experiments/report/comparison_report.h"

namespace syncopate::experiments {

std::vector<Chart> comparison_charts(const ComparisonReport& report, const ComparisonFigures& figures);

}  // namespace syncopate::experiments
