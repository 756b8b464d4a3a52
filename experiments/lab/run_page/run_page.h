// The page of one run: its figures, charts, tables, command and machine. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/run_page/reported_run.h"

namespace syncopate::experiments {

// Returns the page, without references to other files.
std::string run_html(const ReportedRun& run);

// Returns the figures of the run as rows of a table, without a heading: what, and how much with its unit.
std::vector<std::vector<std::string>> run_facts_rows(const ReportedRun& run);

}  // namespace syncopate::experiments
