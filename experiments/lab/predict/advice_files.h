// Advice as files: values for programs, and a page for a browser, with the figures that the text has. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/predict/advised_size.h"
#include "experiments/lab/report/flat_rows.h"

namespace syncopate::experiments {

// Returns a row for each way that was simulated, by size and the best first.
std::vector<FlatRow> advice_rows(const AdviseRequest& request, const std::vector<AdvisedSize>& sizes);

// Returns advice.json; `command` is what asked for it.
std::string advice_json(const AdviseRequest& request, const std::vector<AdvisedSize>& sizes,
                        const std::string& command);

// Returns report.html.
std::string advice_html(const AdviseRequest& request, const std::vector<AdvisedSize>& sizes,
                        const std::string& command);

}  // namespace syncopate::experiments
