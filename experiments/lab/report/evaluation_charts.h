// The charts of one run. Pure.
#pragma once

#include <vector>

#include "experiments/lab/report/chart.h"
#include "experiments/lab/report/run_report.h"

namespace syncopate::experiments {

// Returns quality and loss on the test set over training time, with a line for each repeat; nothing where no repeat has
// been evaluated.
std::vector<AnyChart> evaluation_charts(const std::vector<std::vector<EvalRecord>>& evals);

}  // namespace syncopate::experiments
