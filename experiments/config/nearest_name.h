// What a person most likely meant by a name that nobody knows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syncopate::experiments {

// The name in `known` with the least Levenshtein distance to `name`, at most a third of its letters (two in a short
// name). Empty if none is so near.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

}  // namespace syncopate::experiments
