// A cell: one run of a comparison, in a process of its own, so that several are simulated at once. The process prints
// nothing, leaves its results where any run does, and ends with the program that has started it.
#pragma once

#include <string>
#include <vector>

#include "experiments/cluster/exit_code.h"

namespace syncopate::experiments {

// Returns the command line of a cell: `settings` is the file of the run's settings (config/toml.h), and the results go
// to `output`.
std::vector<std::string> cell_command(const std::string& program, const std::string& settings,
                                      const std::string& output);
bool is_cell_command_line(int argc, const char* const* argv);

// Carries the run out. What kept it from being completed goes to standard error.
ExitCode cell_main(int argc, const char* const* argv);

}  // namespace syncopate::experiments
