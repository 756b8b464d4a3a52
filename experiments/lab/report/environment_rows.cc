#include "experiments/lab/report/environment_rows.h"

#include <fmt/format.h>

namespace syncopate::experiments {
namespace {

std::string shell_word(const std::string& word) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::vector<std::vector<std::string>> environment_rows(const Environment& machine) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) rows.push_back({name, value});
  };
  add("host", machine.host);
  if (machine.cores > 0) {
    add("processor", fmt::format("{}{}{} core{} that could be used", machine.cpu_model,
                                 machine.cpu_model.empty() ? "" : ", ", machine.cores, machine.cores == 1 ? "" : "s"));
  }
  if (machine.memory_gib > 0) add("memory", fmt::format("{:.1f} GiB", machine.memory_gib));
  add("kernel", machine.kernel);
  add("compiler", machine.compiler);
  add("build", machine.build + (machine.vector_set.empty() ? "" : ", " + machine.vector_set));
  add("sanitizers", machine.sanitizers);
  add("checkout at the run", machine.commit);
  return rows;
}

std::string command_again(const std::string& folder) {
  return "./run_experiment --config=" + shell_word(folder + "/config.toml");
}

}  // namespace syncopate::experiments
