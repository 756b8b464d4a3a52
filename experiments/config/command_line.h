// The command line: turns argv into a checked request. It prints nothing and never ends the process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/launch/task_place.h"
#include "common/status.h"
#include "experiments/config/comparison.h"
#include "experiments/config/options/given_options.h"
#include "experiments/config/preset.h"
#include "experiments/config/rate_grid.h"
#include "experiments/config/run_request.h"
#include "experiments/config/submission.h"
#include "prediction/host_prices.h"

namespace syncopate::experiments {

struct CommandLine {
  enum class Action { kHelp, kVersion, kRun, kCompare, kStudy, kCompareFinished, kProfile, kCalibrate, kSubmit };

  Action action = Action::kRun;
  // run, profile, calibrate, submit: checked. compare: what the runs share, with the first value of each --vary
  RunRequest config;
  std::vector<ComparedRun> runs;      // compare: one for each row, with the learning rate that it trains with
  std::vector<std::string> varied;    // compare: the options of --vary
  std::vector<std::string> left_out;  // compare: a line for each mode of all, or combination of --vary, that cannot run
  RateRule rate_rule = RateRule::kPerSample;
  std::int64_t reference_samples = 0;            // compare: reference_samples(config)
  std::optional<RateGrid> tune_rate;             // compare
  std::optional<prediction::HostPrices> prices;  // compare, study: of a process, for an hour
  std::optional<AutoRounds> auto_rounds;         // compare, study: none: config.repeat
  std::optional<int> jobs;                       // compare, study: simulated runs at once; none: one for each core
  std::vector<std::string> folders;              // compare finished runs: the folders of their results
  std::optional<Preset> like;                    // run: whose options stand below those that were given
  bool plot = false;                             // run, compare, study: whether to draw charts on the terminal
  std::optional<Submission> submission;          // submit
  std::string typed;                             // compare, submit: the whole line, quoted for a shell
  GivenOptions given;                            // the options that were given by name
  std::string topic;                             // help: the topic, as help_text() takes it
  // run: the place among the processes that somebody else has started for it; none if it starts its own
  std::optional<TaskPlace> place;
};

// Reads `run_experiment [FLAGS]`, `run_experiment profile [FLAGS]`, `run_experiment calibrate [FLAGS]`, `run_experiment
// submit --kubernetes=FORM --image=IMAGE [FLAGS]`, `run_experiment compare [--modes=LIST] [--vary=OPTION=LIST]
// [FLAGS]`, `run_experiment study [FILE] [FLAGS]`, which takes the same, or `run_experiment compare FOLDER FOLDER...`.
// What compare's fields hold, a study's do, too. Values from the file of --config, or of a study, are used where no
// flag overrides them. `environment` is this process's, where a launcher may have put its place among others. Fails
// with invalid argument and one line that says what is wrong and what would be right (exit code 2).
Result<CommandLine> parse_command_line(int argc, const char* const* argv, const Variables& environment = {});

}  // namespace syncopate::experiments
