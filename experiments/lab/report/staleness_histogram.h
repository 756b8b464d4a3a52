// Staleness joined to loss: how many steps were how stale, and what their batches' losses were. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/step_record.h"

namespace syncopate::experiments {

struct StalenessBin {
  std::int64_t staleness = 0;  // of a step: its mean over shards, rounded to the nearest
  std::int64_t steps = 0;
  double loss = 0;  // mean over these steps
  // Mean over these steps of what their loss is above the mean loss of all steps of the same epoch: losses fall while
  // training goes on, so that stale steps at its beginning would seem to be bad ones.
  double excess_loss = 0;
};

// One bin for each staleness that occurs, from the least to the largest.
std::vector<StalenessBin> staleness_histogram(std::span<const StepRecord* const> steps);

// As in "0: 12.0 % loss 0.31, 1: 80.5 % loss 0.25, 2 to 9: 7.5 % loss 0.27": the first bins, then the rest as one.
// Empty if no step was stale.
std::string staleness_text(std::span<const StalenessBin> bins);

}  // namespace syncopate::experiments
