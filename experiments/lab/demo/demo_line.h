// The command `run_experiment demo [NAME] [--output=DIR] [--data-dir=DIR] [--device=cpu] [--check=FILE]`.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/cluster/exit_code.h"
#include "experiments/lab/demo/demo_run.h"

namespace syncopate::experiments {

struct DemoRequest {
  std::string name;               // empty: list all
  std::string output;             // empty: a new folder below results/, or with `check` the newest
  std::string check;              // the file of answers; empty: run it
  std::vector<std::string> more;  // words that every run gets
};

// `words` are those behind the program's name. Fails with invalid argument and one line that says what is wrong and
// what would be right.
Result<DemoRequest> parse_demo_line(const std::vector<std::string>& words);

// Lists, runs or checks. On a terminal it waits for Enter between the question and the runs. Returns 0 for answers that
// are all right, and kUnequal if one is not.
ExitCode demo_command(const std::vector<std::string>& words, const DemoRunner& runner, Console& console);

}  // namespace syncopate::experiments
