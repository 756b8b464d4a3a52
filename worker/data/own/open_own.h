// Opens a person's own files as a data set. A format is a row of a table in open_own.cc: how it is recognised, and what
// reads it (own_samples.h).
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "worker/data/open_dataset.h"
#include "worker/data/own/own_samples.h"

namespace syncopate::worker {

// The names of files that are read, as shown in help.
inline constexpr const char* kOwnFormats = "*.csv, *.tsv, *.npy, *.npz, *-idx*, or a folder of images or IDX files";

// Returns whether `name` is a path rather than the name of a known set: it has a slash, or ends as a format's files do.
bool is_own_data(const std::string& name);
// Checks the name alone: kInvalidArgument if no format has such files.
Status check_own_name(const std::string& name);

// kInvalidArgument: options that do not fit the files, and what would. kNotFound, kDataLoss: a file that cannot be read
// or has wrong contents, with the place in it. `seed` draws the test part, unless files have one.
Result<DatasetPair> open_own_data(const std::string& path, const OwnOptions& options, std::uint64_t seed);

}  // namespace syncopate::worker
