// Which values of a run cannot be combined. If a part of a run has many rules, they have a file of their own,
// *_rules.cc. Also, which combinations work but may disappoint. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// Fails for combinations that cannot work, saying in one line what is wrong and what would be right. The option table
// has already checked single values. For resolution.cc, which asks once for each run.
Status check_rules(const ResolvedRun& config);

// Returns warnings about effects of `config` that a person may not expect. A run shows these lines before it begins and
// records them among its events.
std::vector<std::string> cautions(const ResolvedRun& config);

}  // namespace syncopate::experiments
