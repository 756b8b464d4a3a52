// The commands `run_experiment ps` and `run_experiment stop RUN`: the runs of this user that are under way on this
// host.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"

namespace syncopate::experiments {

// Returns what the command prints. `words` are those behind the program's name, the first is the command. Fails with
// invalid argument for words that are wrong, and as RunningRuns::stop does.
Result<std::string> running_answer(const std::vector<std::string>& words);

}  // namespace syncopate::experiments
