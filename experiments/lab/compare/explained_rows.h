// Says of each row of a comparison where its step's time went and what became of its training loss, from the folder of
// its round of median throughput.
#pragma once

#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// Fills in `step` and `training` of the rows that have a completed round. A row whose folder cannot be explained gets
// none, and a note of the report says why.
void explain_rows(ComparisonReport& report);

// Does so anew for a comparison that is over. A row whose folder is gone, or cannot be explained, keeps what it has.
void explain_kept_rows(ComparisonReport& report);

}  // namespace syncopate::experiments
