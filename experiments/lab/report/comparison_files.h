// A comparison as files: for programs, and as a page for a browser. results/README.md is their schema.
#pragma once

#include <string>

#include "common/status.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// comparison.csv: a row for each round of each configuration that came to its end. Pure.
std::string comparison_csv(const ComparisonReport& report);

// comparison.json: everything, with intervals, verdicts, and each round's evaluations. Pure.
std::string comparison_json(const ComparisonReport& report);

// comparison.html: tables and charts. Needs nothing beside itself. Pure.
std::string comparison_html(const ComparisonReport& report);

// Writes them into `folder`, which is there, each whole or not at all. Fails with resource exhausted, path and the
// system's reason.
Status write_comparison(const ComparisonReport& report, const std::string& folder);

}  // namespace syncopate::experiments
