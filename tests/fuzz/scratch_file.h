// A file with given bytes, for parsers that take a path.
#pragma once

#include <string>

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {

// Writes `bytes` to the file `name` of a folder of this process's own, which goes when the process ends in order, and
// returns its path.
std::string scratch_file(const std::string& name, Bytes bytes);
// That folder.
const std::string& scratch_folder();

}  // namespace syncopate::fuzz
