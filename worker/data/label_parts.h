// Parts of a training set by label: what each worker trains where none sees the others' classes. Pure, but for the
// cache.
//
// The samples are sorted by label and cut into as many equal parts as there are workers: McMahan et al. 2017,
// "Communication-efficient learning of deep networks from decentralized data", section 3 (the "pathological non-IID"
// partition, with one part a client rather than two).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/status.h"
#include "worker/data/dataset.h"

namespace syncopate::worker {

using SampleParts = std::vector<int>;  // by sample: the worker that trains it

// Returns the parts of samples that have these labels, 0 or more. Among equal labels the lower index comes first; parts
// differ by at most one sample.
SampleParts parts_by_label(std::span<const int> labels, int workers);

// Returns the same of a data set. Calls for equal labels share one copy, as the many workers of a simulated cluster do.
// Fails with invalid argument for a data set whose samples have no fixed label.
Result<std::shared_ptr<const SampleParts>> parts_by_label(const Dataset& dataset, int workers);

// Moves the elements of a permutation so that every `workers`-th one, beginning with the r-th, is of part r, each part
// in the order that the permutation has it in: batch_indices (batch_loader.h) then gives each worker samples of its own
// part alone. The permutation of one worker stays what it is. What exceeds the smallest part comes last.
void interleave_parts(const SampleParts& parts, int workers, std::span<std::int64_t> permutation);

}  // namespace syncopate::worker
