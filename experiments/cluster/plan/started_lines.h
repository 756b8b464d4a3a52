// Lines by which a plan starts this program as something that stands for another process: the words that make it so,
// before those of the process itself. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace syncopate::experiments {

// As the relay of a program of the person's own (command/relay.h), whose words follow. `address` is run_experiment's.
inline constexpr std::string_view kRelayWord = "--relay-command=";
std::vector<std::string> relay_arguments(const std::string& address, const std::string& run_id);

// As the shell of a process in the task at `address` (tasks/task_shell.h), which is given `environment` and runs
// `arguments`.
inline constexpr std::string_view kTaskShellWord = "--task-shell";
std::vector<std::string> task_shell_arguments(const std::string& address,
                                              const std::vector<std::pair<std::string, std::string>>& environment,
                                              bool on_gpu, const std::vector<std::string>& arguments);

}  // namespace syncopate::experiments
