#include "tests/support/running_processes.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

namespace syncopate::testing_support {

bool RunningProcess::has(const std::string& argument) const { return std::ranges::count(arguments, argument) > 0; }

std::vector<RunningProcess> processes_of_run(pid_t coordinator) {
  // A run's name ends in its coordinator and the number of the repeat.
  const std::string coordinator_part = "-" + std::to_string(coordinator);
  const auto is_ours = [&](const std::string& argument) {
    return argument.starts_with("--run=") && argument.substr(0, argument.rfind('-')).ends_with(coordinator_part);
  };
  std::vector<RunningProcess> found;
  std::error_code ignored;  // processes come and go meanwhile
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    RunningProcess process;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process.pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    std::ifstream file(entry.path() / "cmdline");
    for (std::string argument; std::getline(file, argument, '\0');) process.arguments.push_back(argument);
    if (std::ranges::any_of(process.arguments, is_ours)) found.push_back(std::move(process));
  }
  return found;
}

}  // namespace syncopate::testing_support
