// Finds values that are not finite numbers: NaN and infinities.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace syncopate {

// Returns whether all values are finite. It reads each once, at the speed of memory.
bool all_finite(std::span<const float> values);

// Returns the first value that is not finite.
std::optional<std::size_t> first_not_finite(std::span<const float> values);

// Returns "nan", "inf" or "-inf".
std::string name_of_not_finite(double value);

}  // namespace syncopate
