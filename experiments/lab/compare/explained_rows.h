// Says of each row of a comparison where its step's time went, from the folder of its round of median throughput.
#pragma once

#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// Fills in `step` of the rows that have a completed round. A row whose folder cannot be explained gets none, and a note
// of the report says why.
void explain_rows(ComparisonReport& report);

}  // namespace syncopate::experiments
