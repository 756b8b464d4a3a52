// The program that stands on the coordinator's host for a process in a task, as ssh does for one on another host: it
// has the task run the process, writes what that prints, and ends as it does. When the shell is killed, its connection
// ends, and the task kills the process.
//   syncopate --task-shell ADDRESS [NAME=VALUE...] -- cpu|gpu --role=worker --rank=1 ...
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace syncopate::experiments {

// Returns the arguments of the program that runs `arguments` in the task at `address`.
std::vector<std::string> task_shell_arguments(const std::string& address,
                                              const std::vector<std::pair<std::string, std::string>>& environment,
                                              bool on_gpu, const std::vector<std::string>& arguments);

bool is_task_shell_command_line(int argc, const char* const* argv);

// Reads the run's secret from standard input, and then orders to signal the process (process/signal_orders.h). Returns
// the exit code of the process, 128 and a signal that has killed it, or 255 if the task is lost, as ssh does.
int task_shell_main(int argc, const char* const* argv);

}  // namespace syncopate::experiments
