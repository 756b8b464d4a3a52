// Carries out demonstrations, and finds what they have left.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/cluster/exit_code.h"
#include "experiments/lab/demo/demo.h"
#include "experiments/lab/demo/demo_figures.h"
#include "experiments/lab/run/console.h"

namespace syncopate::experiments {

// Carries out a line of run_experiment, without that word, and shows its progress but no table.
using DemoRunner = std::function<ExitCode(const std::vector<std::string>& words)>;

struct DemoPlace {
  std::string folder;             // of the results; each run has one below it
  std::vector<std::string> more;  // words that every run gets: --data-dir, --device
  int columns = 80;               // of the terminal
};

// Runs all, and shows and writes what they have come to: demo.html, demo.json and what `why` says of runs. A run that
// its own --fault has ended is one that has ended; another failure ends the demonstration with its exit code.
ExitCode run_demo(const Demo& demo, const DemoPlace& place, const DemoRunner& runner, Console& console);

// Reads what the runs of a demonstration have left in `folder`. Fails with invalid argument if it is no folder of this
// demonstration, and with not found or data loss, naming the file, if one is missing or malformed.
Result<DemoFigures> read_demo_figures(const Demo& demo, const std::string& folder);

// Returns the newest folder of a demonstration below `results`. Fails with invalid argument if there is none.
Result<std::string> newest_demo_folder(const Demo& demo, const std::string& results);

// Returns how the folder of a demonstration is called: "STAMP-demo-NAME".
std::string demo_folder_name(const Demo& demo, const std::string& stamp);

}  // namespace syncopate::experiments
