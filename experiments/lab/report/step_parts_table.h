// The table of where the time of each row's step went, from an ideal one to the measured one. Pure.
#pragma once

#include <optional>

#include "experiments/lab/report/comparison_tables.h"

namespace syncopate::experiments {

// Returns none if it is known of no row. Columns are the parts that take a hundredth of some row's step; what is left
// is "rest", so that each row adds up. Where closed forms are known the last columns hold the measurement against
// them. Below stands why, in sentences: of every row of a short table, else of the fastest and of the one that
// is furthest from ideal.
std::optional<ComparisonTable> step_parts_table(const ComparisonReport& report);

}  // namespace syncopate::experiments
