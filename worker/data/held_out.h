// Holding out samples of a training set, on which training is judged while it goes on (validation), so that the test
// set stays what nobody has decided by.
//
// The last samples are held out, in the data set's own order and before anything is shuffled, as many as Keras holds
// out for the same fraction: model.fit(validation_split=F) trains the first floor(N * (1 - F)) of N samples.
#pragma once

#include <cstdint>

#include "common/status.h"
#include "worker/data/open_dataset.h"

namespace syncopate::worker {

// Returns how many of `samples` are trained where `fraction` of them, 0 to below 1, is held out. Pure.
std::int64_t trained_samples(std::int64_t samples, double fraction);

// Splits the training set into one that is trained and one to validate on, which is read as a test set is: not
// augmented, the same in each epoch. Both share the samples. A fraction of 0 leaves the pair as it is. Fails with
// invalid argument if nothing would be left to train.
Result<DatasetPair> hold_out(DatasetPair pair, double fraction);

}  // namespace syncopate::worker
