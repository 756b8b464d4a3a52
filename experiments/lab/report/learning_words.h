// What a run's own figures say against its having learnt anything. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/report/run_report.h"

namespace syncopate::experiments {

// What guessing comes to on a test set that is judged by accuracy.
struct Guessing {
  int classes = 0;
  std::int64_t labels = 0;  // in the test set
};

// Returns a sentence for each: the accuracy is not above that of guessing one of the classes, by more than two standard
// errors of so many labels; the loss has ended at more than twice that of the first step. Empty if neither is so, or
// not known.
std::vector<std::string> learning_words(const RunReport& report, const std::optional<Guessing>& guessing);

}  // namespace syncopate::experiments
