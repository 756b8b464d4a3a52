#include "experiments/cluster/plan/started_lines.h"

namespace syncopate::experiments {

std::vector<std::string> relay_arguments(const std::string& address, const std::string& run_id) {
  return {std::string(kRelayWord) + address, "--run=" + run_id};
}

std::vector<std::string> task_shell_arguments(const std::string& address,
                                              const std::vector<std::pair<std::string, std::string>>& environment,
                                              bool on_gpu, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{std::string(kTaskShellWord), address};
  for (const auto& [name, value] : environment) words.push_back(name + "=" + value);
  words.insert(words.end(), {"--", on_gpu ? "gpu" : "cpu"});
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

}  // namespace syncopate::experiments
