// The command line: argv in, a checked request out. Prints nothing and ends nothing.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/config/comparison.h"
#include "experiments/config/given_options.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

struct CommandLine {
  enum class Action { kHelp, kVersion, kRun, kCompare };

  Action action = Action::kRun;
  RunConfig config;  // run: validated, not resolved. compare: what the runs share, with the first of --vary's values
  std::vector<ComparedRun> runs;      // compare: one for each of --modes, or for each and each of --vary's values
  std::string varied;                 // compare: the option of --vary; empty for none
  std::vector<std::string> left_out;  // compare: a line for each combination of these that cannot run
  GivenOptions given;                 // what was asked for by name
  std::string topic;                  // help: of what, as help_text takes it
};

// Reads `run_experiment [FLAGS]` or `run_experiment compare [--modes=LIST] [--vary=OPTION=LIST] [FLAGS]`, and the file
// of --config below the flags. Fails with invalid argument and one line that says what is wrong and what would be right
// (exit code 2).
Result<CommandLine> parse_command_line(int argc, const char* const* argv);

}  // namespace syncopate::experiments
