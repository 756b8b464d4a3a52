#include "experiments/cluster/tasks/task_command.h"

#include <algorithm>

namespace syncopate::experiments {
namespace {

constexpr char kEnd = '\0';  // of each text; an empty one ends a list

void put(std::string& bytes, std::string_view text) {
  bytes += text;
  bytes += kEnd;
}

// Takes the texts of a list from the front of `bytes`.
Result<std::vector<std::string>> take_list(std::string_view& bytes) {
  std::vector<std::string> texts;
  while (true) {
    const std::size_t end = bytes.find(kEnd);
    if (end == std::string_view::npos) return Status::data_loss("a list without an end");
    const std::string_view text = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    if (text.empty()) return texts;
    texts.emplace_back(text);
  }
}

}  // namespace

std::string to_bytes(const TaskCommand& command) {
  std::string bytes;
  bytes.reserve(std::size_t{1} << 16);  // grows no more in practice, and leaves no copy behind
  for (const auto& [name, value] : command.environment) put(bytes, name + "=" + value);
  put(bytes, "");
  put(bytes, command.on_gpu ? "gpu" : "cpu");
  for (const std::string& argument : command.arguments) put(bytes, argument);
  put(bytes, "");
  bytes += command.input.view();
  return bytes;
}

Result<TaskCommand> parse_task_command(std::string_view bytes) {
  TaskCommand command;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> environment, take_list(bytes));
  for (const std::string& variable : environment) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos || equals == 0) return Status::data_loss("a variable without a name or a value");
    command.environment.emplace_back(variable.substr(0, equals), variable.substr(equals + 1));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<std::string> words, take_list(bytes));
  if (words.size() < 2 || (words[0] != "gpu" && words[0] != "cpu") || !words[1].starts_with("--role=")) {
    return Status::data_loss("a command that is not of a run");
  }
  command.on_gpu = words[0] == "gpu";
  command.arguments.assign(words.begin() + 1, words.end());
  command.input = SecretText(bytes);
  return command;
}

}  // namespace syncopate::experiments
