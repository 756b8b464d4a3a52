// Charts of a table of published measurements beside its closed form. Pure.
#pragma once

#include <vector>

#include "experiments/lab/report/chart.h"
#include "prediction/reproduction/reproduction.h"

namespace syncopate::experiments {

// In the first chart, points are measured and lines are predicted: over the number of workers if the
// cells make few curves of three or more sizes; else every cell over its prediction, with the line on which both are
// alike. The second has the errors, unless there are none to be seen.
std::vector<AnyChart> reproduction_charts(const prediction::Reproduction& table);

}  // namespace syncopate::experiments
