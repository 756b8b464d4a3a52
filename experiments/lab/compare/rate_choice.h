// Which of the learning rates that --tune-rate has tried a row trains with. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

struct RateChoice {
  std::size_t best = 0;                        // which of the trials
  bool is_lowest = false, is_highest = false;  // of all that were tried: a better rate may lie beyond
};

// `trials` are of one row, by ascending rate. A trial that has diverged for fewer seeds is better; then one with the
// higher mean quality at its end, then with the lower mean loss, then with the lower rate. Empty where all have
// diverged for all seeds.
std::optional<RateChoice> choose_rate(std::span<const RateTrial> trials);

}  // namespace syncopate::experiments
