// The sentences that end a comparison: which row is fastest, and whether it learnt as well. Pure.
#pragma once

#include <string>

#include "experiments/lab/report/comparison_figures.h"

namespace syncopate::experiments {

// Returns which row is fastest, as far as the rounds show it: a row wins only where all others are judged slower. Where
// options are varied and several modes stand at their values, it says so of each value, since rows of unlike values, as
// of other numbers of workers, are no choice. Where
// it is shown to have learnt worse than another, by the rounds, or, where they are too few, by more than the size of
// the test set explains, that is said too, and which is the fastest of the others. Empty where nothing was compared.
std::string answer_line(const ComparisonReport& report, const ComparisonFigures& figures);

}  // namespace syncopate::experiments
