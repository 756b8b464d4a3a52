// Writes a comparison as files: for programs, and as a page for a browser. results/README.md is their schema.
#pragma once

#include <string>

#include "common/status.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// Returns comparison.csv: one row for each completed round of each configuration. Pure.
std::string comparison_csv(const ComparisonReport& report);

// Returns comparison.json: everything, with intervals, verdicts, and each round's evaluations. Pure.
std::string comparison_json(const ComparisonReport& report);

// Returns comparison.html: tables and charts, without references to other files. Pure.
std::string comparison_html(const ComparisonReport& report);

// Writes them into the existing folder `folder`, each completely or not at all. Fails with resource exhausted, the path
// and the system's reason.
Status write_comparison(const ComparisonReport& report, const std::string& folder);

}  // namespace syncopate::experiments
