// Suggests the name that a person most likely meant by an unknown one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syncopate::experiments {

// Returns the name in `known` with the least Levenshtein distance to `name`. The distance may be at most a third of its
// letters (two for a short name). Returns an empty text if no name is that near.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

}  // namespace syncopate::experiments
