// What a worker's process does before it becomes a program of the person's own: it asks the kernel to end it with
// run_experiment, however that is killed.
#pragma once

#include <string>
#include <vector>

namespace syncopate::experiments {

// Returns the command line that starts `command` so; `program` is this one.
std::vector<std::string> start_line_of(const std::string& program, const std::vector<std::string>& command);
bool is_start_line(int argc, const char* const* argv);
// Becomes the program. Returns the exit code if there is none that can be started, having said so on standard error.
int start_main(int argc, char** argv);

}  // namespace syncopate::experiments
