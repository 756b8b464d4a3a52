// The cores that this process may run on.
#pragma once

#include <vector>

namespace syncopate {

// Returns the cores' numbers, ascending, as the calling thread's affinity allows them; none if the system does not
// tell.
std::vector<int> usable_cores();

}  // namespace syncopate
