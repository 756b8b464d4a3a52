// Reads folders of images, a folder for each class.
#pragma once

#include <string>

#include "common/status.h"
#include "worker/data/own/own_samples.h"

namespace syncopate::worker {

// FOLDER/CLASS/*.png, *.jpg and *.jpeg, or FOLDER/train/CLASS/… and FOLDER/test/CLASS/… (test may be val, valid or
// validation), where that is the test part; other folders beside train or within a class are refused. All images have
// one size, or are scaled to options.image_size; grey ones have three channels if any has. They are kept in memory as
// bytes, kMostImageBytes at most. Names that begin with a dot and files of other kinds are left out, but for images of
// other kinds, which are refused. Failures name the file.
Result<OwnFiles> read_image_folder(const std::string& folder, const OwnOptions& options);

inline constexpr std::int64_t kMostImageBytes = std::int64_t{4} << 30;

}  // namespace syncopate::worker
