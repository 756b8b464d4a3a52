// The charts of a comparison. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// Returns the charts, each an <svg> element: ratios of speed with their intervals; quality over training time; the
// results of the rates that were tried; bytes sent against what they buy, where rows send different amounts; and, where
// a number was varied, speed, bytes, memory and quality over it. One mode has the same colour in all of them, and a row
// the same marker. A chart that would show nothing is left out.
std::vector<std::string> comparison_charts(const ComparisonReport& report, const ComparisonFigures& figures);

}  // namespace syncopate::experiments
