// Writes published measurements beside closed forms as files: a page for a browser and values for programs.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "prediction/reproduction/reproduction.h"

namespace syncopate::experiments {

// Returns reproduction.html: for each table what it is, charts, and its cells. Pure.
std::string reproduction_html(const std::vector<prediction::Reproduction>& tables);

// Returns reproduction.csv: a row for each cell; `error` is the prediction's, as a fraction. Pure.
std::string reproduction_csv(const std::vector<prediction::Reproduction>& tables);

// Writes both into `folder`, which is created unless it exists, in place of older ones. Fails with resource exhausted,
// the path and the system's reason.
Status write_reproduction(const std::vector<prediction::Reproduction>& tables, const std::string& folder);

}  // namespace syncopate::experiments
