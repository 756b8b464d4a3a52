// Whether a comparison whose number of rounds is not given has had enough of them. Pure.
//
// Who looks at figures again and again, and ends once they show a difference, finds one by chance in far more than 1 of
// 20 comparisons. Figures are therefore looked at a few times alone, after kAnalyses rounds, each time at the lower
// level that keeps the chance over all of them (Pocock 1977, Group sequential methods in the design and analysis of
// clinical trials). Time may end the rounds before: what there is then is judged once more, in place of the analyses
// that were still to come. Intervals at such levels hold at all analyses together (Jennison and Turnbull 1989, Interim
// analyses: the repeated confidence interval approach), so that they may show that a difference does not matter, too.
#pragma once

#include <array>
#include <cstddef>

#include "experiments/lab/report/comparison_report.h"
#include "experiments/lab/report/paired_comparison.h"

namespace syncopate::experiments {

// Numbers of rounds.
inline constexpr std::array<std::size_t, kMostAnalyses> kAnalyses = {kFewestRounds, 8, 12, 19, 30};

// Returns whether the two are shown to lie no farther apart than `margin`, as a part: 0.02 is 2 %.
bool is_within(const Difference& ratio, double margin);

// Returns whether each row that takes part in the last round of `report` is told from the first row and from the
// fastest, or is shown to be within the margin of it.
bool is_settled(const ComparisonReport& report, double margin);

}  // namespace syncopate::experiments
