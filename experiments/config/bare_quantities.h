// Numbers without a unit that a command line gives where times or bytes are read. Pure.
#pragma once

#include <string>
#include <vector>

namespace syncopate::experiments {

// Returns a line for each number of `words`, up to "--", that an option of that name reads as seconds or bytes and that
// has no unit: what it is understood as. Zero is the same in each unit.
std::vector<std::string> bare_quantities(const std::vector<std::string>& words);

}  // namespace syncopate::experiments
