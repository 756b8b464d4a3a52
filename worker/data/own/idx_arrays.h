// Reads a person's IDX files (idx_format.h) of any type of number, number of dimensions and number of classes.
#pragma once

#include <string>

#include "common/status.h"
#include "worker/data/own/own_samples.h"

namespace syncopate::worker {

// The values of all samples, as "train-images-idx3-ubyte" has them, plain or .gz; options.target names the file of the
// labels.
Result<OwnFiles> read_idx(const std::string& path, const OwnOptions& options);

// Returns whether a folder has such files. kNotFound: it cannot be read.
Result<bool> has_idx_files(const std::string& folder);
// The four files of a folder whose names contain train-images-idx, train-labels-idx, and t10k- or test- for train-.
Result<OwnFiles> read_idx_folder(const std::string& folder, const OwnOptions& options);

}  // namespace syncopate::worker
