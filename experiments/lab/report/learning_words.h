// What a run's own figures say against its having learnt anything. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/report/run_report.h"
#include "worker/data/dataset.h"

namespace syncopate::experiments {

// What says to what guessing comes on a test set.
struct Guessing {
  int classes = 0;
  std::int64_t labels = 0;  // in the test set; of rankings, these
  std::int64_t most = 0;    // labels of the commonest class there; 0: not known
  worker::Judgement judgement = worker::Judgement::kAccuracy;
};

// Returns a sentence for each: the figure that the test set is judged by is not above that of guessing, by more than
// two standard errors of so many labels (of clicks, where half of them are; an R2, at all); the loss has ended at more
// than twice that of the first step. Empty if neither is so, or not known. Guessing: one of the classes, or always the
// commonest; half of all pairs of clicks in order; ten of each hundred in the first ten; always the mean of the targets
// (an R2 of 0).
std::vector<std::string> learning_words(const RunReport& report, const std::optional<Guessing>& guessing);

// Returns the standard error of the headline figure on the test set (final_headline), as of one model over test sets of
// that size; none: nothing was evaluated, or the size is not known. An AUC's is that of a guess's, where half of the
// samples are clicks; an R2's that of independent normal errors, which is 2 (1 - R2) / sqrt(n).
std::optional<double> sampling_error(const RunReport& report);

}  // namespace syncopate::experiments
