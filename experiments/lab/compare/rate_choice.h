// Which of the learning rates that --tune-rate has tried a row trains with. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

struct RateChoice {
  std::size_t best = 0;  // index of the best trial
  // whether it is the lowest or the highest rate tried: a better one may lie beyond it
  bool is_lowest = false, is_highest = false;
};

// Chooses among the trials of one row, given by ascending rate. The better trial is the one that diverged for fewer
// seeds; then the one with the higher mean quality at its end, then with the lower mean loss, then with the lower rate.
// Empty if all have diverged for all seeds.
std::optional<RateChoice> choose_rate(std::span<const RateTrial> trials);

}  // namespace syncopate::experiments
