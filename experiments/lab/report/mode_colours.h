// The colour of each mode, the same on every page. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace syncopate::experiments {

// Returns a colour for each of `modes` ("allreduce:ring", "ps:bounded:4"): those of the modes that most pages have are
// always the same, and the others take what is left, in their order. No two share one, as long as there are enough.
std::map<std::string, int> mode_colours(const std::vector<std::string>& modes);

// Returns a colour for each row of these modes: that of its mode; or, where all are of one mode, which a colour would
// not distinguish, one of its own.
std::vector<int> row_colours(const std::vector<std::string>& modes);

}  // namespace syncopate::experiments
