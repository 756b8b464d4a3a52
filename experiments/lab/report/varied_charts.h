// The charts of a comparison over the options that were varied. Pure.
#pragma once

#include <vector>

#include "experiments/lab/report/chart.h"
#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/report/comparison_looks.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// For each option that was varied, and whose values are numbers, speed beside its closed form, quality, the time to the
// target, bytes and memory over it; over workers also scaling efficiency. Charts of nothing may be among them.
std::vector<AnyChart> varied_charts(const ComparisonReport& report, const ComparisonFigures& figures,
                                    const Looks& looks);

}  // namespace syncopate::experiments
