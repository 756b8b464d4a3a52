// The names of a row's folders. Pure.
#pragma once

#include <string>

namespace syncopate::experiments {

// Returns "ps-bounded-4-batch-size-32" for "ps:bounded:4 batch-size=32". Any label of a comparison becomes one valid
// file name.
std::string folder_of(std::string label);

}  // namespace syncopate::experiments
