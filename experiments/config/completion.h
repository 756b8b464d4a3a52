// `run_experiment completion`: a script by which bash completes the program's commands and options. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"

namespace syncopate::experiments {

// Returns the script. `words` are those of the line, the command first; it takes no others.
Result<std::string> completion_answer(const std::vector<std::string>& words);

}  // namespace syncopate::experiments
