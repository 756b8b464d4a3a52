// The command `run_experiment why RUN [OTHER] [--output=FILE]`: where a finished run's time went.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"

namespace syncopate::experiments {

// Whether it is for why_answer(), and not parse_command_line(), to read the line; `--help` is not.
bool is_why_line(int argc, const char* const* argv);

// Returns what the command prints, and writes the JSON of --output. `words` are those behind the program's name, the
// first is the command. Fails with invalid argument for words that are wrong or folders that are none of finished runs,
// with not found or data loss for files of such a folder, and with resource exhausted if the JSON cannot be written.
Result<std::string> why_answer(const std::vector<std::string>& words);

}  // namespace syncopate::experiments
