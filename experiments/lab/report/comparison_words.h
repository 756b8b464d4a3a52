// What a comparison's figures say, in sentences: for the terminal, the page and the files alike. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/report/comparison_figures.h"

namespace syncopate::experiments {

// Returns "faster", "slower", "no difference shown" or "not judged", for these words for higher and lower.
std::string words_of(Verdict verdict, const std::string& higher, const std::string& lower);

// Returns what a reader must know to trust the figures, one sentence each: how they were judged, what was not judged,
// and what else the machine was doing. The last one is the answer (comparison_answer.h).
std::vector<std::string> caveats(const ComparisonReport& report, const ComparisonFigures& figures);

}  // namespace syncopate::experiments
