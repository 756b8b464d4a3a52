// Relates staleness to loss: how many steps had which staleness, and the losses of their batches. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/step_record.h"

namespace syncopate::experiments {

struct StalenessBin {
  std::int64_t staleness = 0;  // of a step: its mean over shards, rounded to the nearest integer
  std::int64_t steps = 0;
  double loss = 0;  // mean over the samples of these steps; no number where nothing is learnt
  // Mean over the same samples of their loss minus the mean loss of all steps of the same epoch. Losses fall during
  // training, so that the early stale steps would otherwise look bad.
  double excess_loss = 0;
};

// Returns one bin for each staleness that occurs, from the least to the largest.
std::vector<StalenessBin> staleness_histogram(std::span<const StepRecord* const> steps);

// Returns, for example, "0: 12.0 % loss 0.31, 1: 80.5 % loss 0.25, 2 to 9: 7.5 % loss 0.27": the first bins, then the
// rest as one. Empty if no step was stale.
std::string staleness_text(std::span<const StalenessBin> bins);

}  // namespace syncopate::experiments
