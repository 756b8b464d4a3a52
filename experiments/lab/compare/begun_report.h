// The report of a comparison that has not run yet: its title, what its rows share, and empty rounds. Pure, but for the
// time and the machine.
#pragma once

#include <cstddef>

#include "experiments/lab/compare/compare.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

ComparisonReport begin_report(const ComparisonJob& job, std::size_t rounds);

}  // namespace syncopate::experiments
