// Reads back comparison.json (results/README.md is its schema). Pure: a text in, a report out. The file is not trusted:
// a malformed one is an error that says what is wrong, and names no path.
#pragma once

#include <string_view>

#include "common/status.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// Returns the report that comparison_json() was made of, but for figures of stragglers, and of the machine what its
// libraries are. What files of earlier versions lack is as if it were not known. Fails with data loss if the text is
// incomplete or malformed.
Result<ComparisonReport> read_comparison(std::string_view json);

}  // namespace syncopate::experiments
