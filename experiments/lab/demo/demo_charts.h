// The charts of a demonstration, of the figures that its runs have left. Pure.
#pragma once

#include <vector>

#include "common/status.h"
#include "experiments/lab/demo/demo.h"
#include "experiments/lab/demo/demo_figures.h"
#include "experiments/lab/report/chart.h"

namespace syncopate::experiments {

// Fails with invalid argument for a formula that cannot be evaluated or a run that is no comparison.
Result<std::vector<AnyChart>> demo_charts(const Demo& demo, const DemoFigures& figures);

}  // namespace syncopate::experiments
