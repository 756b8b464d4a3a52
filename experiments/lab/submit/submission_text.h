// What `run_experiment submit` prints: the manifests of a job, or a script, with comments that say how they are used.
// Pure.
#pragma once

#include <string>

#include "experiments/config/command_line.h"

namespace syncopate::experiments {

// Returns the text for standard output; `program` is this one's path. Requires line.submission.
std::string submission_text(const CommandLine& line, const std::string& program);

}  // namespace syncopate::experiments
