// Reads a person's arrays as NumPy saves them.
#pragma once

#include <string>

#include "common/status.h"
#include "worker/data/own/own_samples.h"

namespace syncopate::worker {

// np.save: the values of all samples; options.target names the file of the labels.
Result<OwnFiles> read_npy(const std::string& path, const OwnOptions& options);

// np.savez and np.savez_compressed. x_train and y_train are the training part, x_test and y_test the test part, as
// Keras has them; else there is an array of labels, options.target or y, target, labels or label, and one of values: x,
// X, data, images or features, or the only other one.
Result<OwnFiles> read_npz(const std::string& path, const OwnOptions& options);

}  // namespace syncopate::worker
