// What `run_experiment submit` prints: the manifests of a job, behind comments that say how they are used. Pure.
#pragma once

#include <string>

#include "experiments/config/command_line.h"

namespace syncopate::experiments {

// Returns the text for standard output. Requires line.submission.
std::string submission_text(const CommandLine& line);

}  // namespace syncopate::experiments
