// What a row's folders are called. Pure.
#pragma once

#include <string>

namespace syncopate::experiments {

// "ps:bounded:4 batch-size=32" -> "ps-bounded-4-batch-size-32". Any label that a comparison has becomes one name of a
// file.
std::string folder_of(std::string label);

}  // namespace syncopate::experiments
