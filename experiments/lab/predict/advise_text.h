// What `run_experiment advise` prints. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/predict/advised_size.h"

namespace syncopate::experiments {

// For each size a table of the best ways, the best first, what follows from them in sentences, and the command of each
// row.
std::string advise_text(const AdviseRequest& request, const std::vector<AdvisedSize>& sizes);

// Returns the table of one size: its heading, and the best way of each kind.
std::vector<std::vector<std::string>> advise_rows(const AdviseRequest& request, const AdvisedSize& size);

// Returns which mode is ahead at each size, and where that changes; empty for one size.
std::string modes_ahead(const std::vector<AdvisedSize>& sizes);

}  // namespace syncopate::experiments
