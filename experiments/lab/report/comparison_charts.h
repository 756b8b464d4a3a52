// The charts of a comparison. Pure.
#pragma once

#include <vector>

#include "experiments/lab/report/chart.h"
#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// Returns the charts: where a number was varied, speed, efficiency, quality, bytes and memory over it; ratios of speed
// with their intervals; quality over training time; the results of the rates that were tried; and bytes sent against
// what they buy, where rows send different amounts for another reason than their number of workers. One mode has the
// same colour in all of them, and a row the same marker. Charts of a simulated cluster say so. A chart that would show
// nothing is left out.
std::vector<AnyChart> comparison_charts(const ComparisonReport& report, const ComparisonFigures& figures);

}  // namespace syncopate::experiments
