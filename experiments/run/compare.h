// compare: one job in several modes, side by side.
//
// First it proves that the comparison is fair: local, allreduce and ps sync must follow the same curve (DESIGN: one
// seed, one data order, one update rule). Then every mode runs --repeat times, in turns, so that a slow spell of the
// machine falls on all of them; the first mode runs twice as often, and how far its two halves lie apart is the noise
// floor.
#pragma once

#include <vector>

#include "experiments/config/comparison.h"
#include "experiments/coordinator/interrupts.h"
#include "experiments/exit_code.h"

namespace syncopate::experiments {

// `base` has been validated, and so has every run.
ExitCode compare(const RunConfig& base, const std::vector<ComparedRun>& runs, Interrupts& interrupts);

// The largest absolute difference between two sets of weights, relative to the largest absolute weight of the first.
// Infinite where they differ in length or are not numbers.
double largest_relative_difference(const std::vector<float>& first, const std::vector<float>& second);

}  // namespace syncopate::experiments
