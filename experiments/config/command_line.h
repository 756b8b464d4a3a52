// The command line: argv in, a checked request out. Prints nothing and ends nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/config/comparison.h"
#include "experiments/config/options/given_options.h"
#include "experiments/config/rate_grid.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

struct CommandLine {
  enum class Action { kHelp, kVersion, kRun, kCompare, kCompareFinished };

  Action action = Action::kRun;
  RunConfig config;  // run: validated, not resolved. compare: what the runs share, with the first of --vary's values
  std::vector<ComparedRun> runs;      // compare: a row each, with the learning rates that they train with
  std::vector<std::string> varied;    // compare: the options of --vary
  std::vector<std::string> left_out;  // compare: a line for each combination of these that cannot run
  RateRule rate_rule = RateRule::kPerSample;
  std::int64_t reference_samples = 0;  // compare: reference_samples of `config`
  std::optional<RateGrid> tune_rate;   // compare
  std::vector<std::string> folders;    // compare finished runs: where their results lie
  std::string typed;                   // compare: the whole line, for a shell
  GivenOptions given;                  // what was asked for by name
  std::string topic;                   // help: of what, as help_text takes it
};

// Reads `run_experiment [FLAGS]`, `run_experiment compare [--modes=LIST] [--vary=OPTION=LIST] [FLAGS]` or
// `run_experiment compare FOLDER FOLDER...`, and the file of --config below the flags. Fails with invalid argument and
// one line that says what is wrong and what would be right (exit code 2).
Result<CommandLine> parse_command_line(int argc, const char* const* argv);

}  // namespace syncopate::experiments
