// The chart of where the time of each row's step went, from an ideal one to the measured one. Pure.
#pragma once

#include "experiments/lab/report/chart.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// A bar for each row of which it is known, of the same parts as those of step_parts_table.h. Parts below zero, which
// make the others shorter, are not drawn.
BarChart step_parts_chart(const ComparisonReport& report);

}  // namespace syncopate::experiments
