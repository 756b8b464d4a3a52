// What answers the commands that are no runs of their own: why, report, predict, doctor and their like.
#pragma once

#include <string>
#include <vector>

#include "experiments/cluster/exit_code.h"

namespace syncopate::experiments {

struct Answer {
  const char* command;
  // Carries the line out, whose first word is the command, and says how it has ended.
  ExitCode (*run)(const std::vector<std::string>& words);
};

// Returns what answers the line; null where it is a run's, or asks for help.
const Answer* answer_to(const std::vector<std::string>& words);

}  // namespace syncopate::experiments
