// The curves of a comparison: what each row has learnt in the course of its training. Pure.
#pragma once

#include <vector>

#include "experiments/lab/report/chart.h"
#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/report/comparison_looks.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// Returns training loss, loss and quality on the test set, and, where samples are held out, loss and accuracy on these:
// a line for each row, in its round of median throughput. Each can be switched between time, steps and samples. Of more
// rows than can be told apart, those with the same varied values are a part of their own. Charts of nothing may be
// among them.
std::vector<AnyChart> comparison_curves(const ComparisonReport& report, const ComparisonFigures& figures,
                                        const Looks& looks);

}  // namespace syncopate::experiments
