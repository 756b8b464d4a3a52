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

// How far two sets of weights lie apart, relative to the length of the first: |first - second| / |first|, Euclidean.
// Infinite where they differ in size or are not numbers.
double relative_distance(const std::vector<float>& first, const std::vector<float>& second);

}  // namespace syncopate::experiments
