// The program that stands on the coordinator's host for a process in a task, as ssh does for one on another host: it
// has the task run the process, writes what that prints, and ends as it does. When the shell is killed, its connection
// ends, and the task kills the process.
//   syncopate --task-shell ADDRESS [NAME=VALUE...] -- cpu|gpu --role=worker --rank=1 ...
#pragma once

namespace syncopate::experiments {

bool is_task_shell_command_line(int argc, const char* const* argv);

// Reads the run's secret from standard input, and then orders to signal the process (process/signal_orders.h). Returns
// the exit code of the process, 128 and a signal that has killed it, or 255 if the task is lost, as ssh does.
int task_shell_main(int argc, const char* const* argv);

}  // namespace syncopate::experiments
