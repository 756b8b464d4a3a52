// Slurm's lists of nodes. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace syncopate {

inline constexpr std::size_t kMostNodes = 1000;

// Returns the names in a list of Slurm's: "node[1-3,07-08],login" has node1 to node3, node07, node08 and login. Fails
// with invalid argument for anything else, and for more than kMostNodes names.
Result<std::vector<std::string>> parse_node_list(std::string_view text);

}  // namespace syncopate
