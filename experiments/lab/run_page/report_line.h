// The command `run_experiment report FOLDER [FOLDER...] [--output=FILE.html]`: a page of a finished run, of a
// comparison or study, or of several runs.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"

namespace syncopate::experiments {

// Writes the page, and returns what the command prints: where it lies. Of one folder it is FOLDER/report.html unless
// --output names another file, or FOLDER/comparison.html, anew, if it is that of a comparison; of several the
// comparison of these runs, and --output must be given. `words` are those behind the program's name, the first is the
// command. Fails with invalid argument for words that are wrong or folders that are none of finished runs, with not
// found or data loss for files of such a folder, and with resource exhausted if the page cannot be written.
Result<std::string> report_answer(const std::vector<std::string>& words);

}  // namespace syncopate::experiments
