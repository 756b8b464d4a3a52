// What the command `why` prints, and its JSON. Pure.
#pragma once

#include <string>

#include "experiments/lab/why/explained_run.h"

namespace syncopate::experiments {

// The paragraph, the table of the waterfall, other causes, and what could not be known.
std::string why_text(const ExplainedRun& run);
// Where the difference between two runs went: a sentence or two, and the two waterfalls side by side.
std::string difference_text(const ExplainedRun& first, const ExplainedRun& second);

std::string why_json(const ExplainedRun& run);
std::string difference_json(const ExplainedRun& first, const ExplainedRun& second);

}  // namespace syncopate::experiments
