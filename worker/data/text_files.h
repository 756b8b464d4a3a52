// The data set `text`: the contents of *.txt files, byte by byte. The vocabulary is all 256 bytes, whether they occur
// or not, so that a model's size does not depend on the files, and every file can be read.
//
// The last tenth of each file's bytes is its test part, the rest its training part. A sample is a window of context + 1
// bytes of one part. Windows follow one another `context` bytes apart, so that each byte but a part's first is a label
// once. A part too short for a window has none, and the remainder after the last window is not used.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "common/status.h"
#include "worker/data/dataset.h"

namespace syncopate::worker {

inline constexpr int kTextCharacters = 256;

// The training part and the test part.
using TextParts = std::pair<std::unique_ptr<Dataset>, std::unique_ptr<Dataset>>;

// Opens the *.txt files of the first of `folders` that has any, by name. kNotFound: there are none, or one of them
// cannot be read or is not a regular file. kDataLoss: one is empty, or all together do not fill a window of each part.
Result<TextParts> open_text(const std::vector<std::string>& folders, int context);

}  // namespace syncopate::worker
