// The charts of a comparison. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// Each an <svg> element: ratios of speed with their intervals; quality over training time; what came of the rates that
// were tried; what travels against what it buys, where rows send different amounts; and, where a number was varied,
// speed, bytes, memory and quality over it. One mode has one colour in all of them, and a row its marker. A chart that
// would tell nothing is left out.
std::vector<std::string> comparison_charts(const ComparisonReport& report, const ComparisonFigures& figures);

}  // namespace syncopate::experiments
