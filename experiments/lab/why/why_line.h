// The command `run_experiment why RUN [OTHER] [--output=FILE]`: where a finished run's time went.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"

namespace syncopate::experiments {

// Returns what the command prints, and writes the JSON of --output. `words` are those behind the program's name, the
// first is the command. Fails with invalid argument for words that are wrong or folders that are none of finished runs,
// with not found or data loss for files of such a folder, and with resource exhausted if the JSON cannot be written.
Result<std::string> why_answer(const std::vector<std::string>& words);

}  // namespace syncopate::experiments
