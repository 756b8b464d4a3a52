// The data set `text`: what stands in *.txt files, byte by byte. The vocabulary is all 256 bytes, whether they occur or
// not, so that a model's size does not depend on the files, and every file can be read.
//
// Of each file the last tenth of its bytes is its test part, the rest its training part. A sample is a window of
// context
// + 1 bytes of one part: windows follow one another `context` bytes apart, so that each byte but a part's first is a
// label once. A part too short for a window has none, nor is what is left behind the last one used.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "common/status.h"
#include "worker/data/dataset.h"

namespace syncopate::worker {

inline constexpr int kTextCharacters = 256;

// Training part, test part.
using TextParts = std::pair<std::unique_ptr<Dataset>, std::unique_ptr<Dataset>>;

// The *.txt files of the first of `folders` that has any, by name. kNotFound: there are none, or one of them cannot be
// read or is no regular file. kDataLoss: one is empty, or all together do not fill a window of each part.
Result<TextParts> open_text(const std::vector<std::string>& folders, int context);

}  // namespace syncopate::worker
