// What a comparison or study has kept in its folder, read back for its page.
#pragma once

#include <string>

#include "common/status.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// Whether the folder is one of a comparison or a study, whole or not.
bool is_of_comparison(const std::string& folder);

// Reads `comparison.json`. Where the folders of runs are still there, where they were or below `folder` if that was
// moved, it says anew from them where each row's time went. A comparison that was killed in its first round has no such
// file: its completed runs are then read as finished ones. The files are not trusted. Fails with not found if nothing
// was completed, and with data loss, naming the file, if one is malformed.
Result<ComparisonReport> read_kept_comparison(const std::string& folder);

}  // namespace syncopate::experiments
