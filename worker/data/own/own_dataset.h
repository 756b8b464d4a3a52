// Makes training and test part of a person's own samples, of any format: which sample is of which part, what the target
// is, and how values are scaled.
#pragma once

#include <cstdint>

#include "common/status.h"
#include "worker/data/open_dataset.h"
#include "worker/data/own/own_samples.h"

namespace syncopate::worker {

// Returns which of `samples` are the test part: the first round(samples * fraction) of a permutation drawn from `seed`,
// one at least, ascending. Pure.
std::vector<std::int64_t> drawn_test_samples(std::int64_t samples, double fraction, std::uint64_t seed);

// Without files.test, a part of the samples that is drawn from `seed` is the test part. Fails with data loss, naming
// the file and the place, if there are not as many labels as samples, a value is not finite, a test sample has a class
// that no training sample has, or both parts differ in their form; with invalid argument if --task=classes or auto
// would make a class of too many different values, or no part would be left.
Result<DatasetPair> make_own_dataset(OwnFiles files, const OwnOptions& options, std::uint64_t seed);

}  // namespace syncopate::worker
