#include "experiments/cluster/tasks/task_shell.h"

#include <fmt/format.h>
#include <signal.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <string_view>

#include "common/text/number.h"
#include "experiments/cluster/process/private_memory.h"
#include "experiments/cluster/process/shared_keys.h"
#include "experiments/cluster/starter.h"
#include "experiments/cluster/tasks/task_address.h"
#include "experiments/cluster/tasks/task_command.h"

namespace syncopate::experiments {
namespace {

constexpr const char* kOption = "--task-shell";
constexpr int kLostTask = 255;  // as ssh
constexpr Duration kConnectTimeout = std::chrono::seconds(10);
constexpr Duration kAnswerEvery = std::chrono::hours(1);

int fail(const Status& status) {
  fmt::print(stderr, "the task: {}\n", status.message());
  return kLostTask;
}

Result<TaskCommand> command_of(std::span<const char* const> words, TimePoint deadline) {
  TaskCommand command;
  const auto border = std::ranges::find_if(words, [](const char* word) { return std::string_view(word) == "--"; });
  for (auto word = words.begin(); word != border; ++word) {
    const std::string text = *word;
    const std::size_t equals = std::min(text.find('='), text.size());
    command.environment.emplace_back(text.substr(0, equals), text.substr(std::min(equals + 1, text.size())));
  }
  if (words.end() - border < 3) return Status::invalid_argument("no command");
  command.on_gpu = std::string_view(border[1]) == "gpu";
  command.arguments.assign(border + 2, words.end());
  SYNCOPATE_ASSIGN_OR_RETURN(const SecretText line, line_on_stdin(deadline));
  command.input = SecretText(line.view(), "\n");
  return command;
}

// Writes what the process prints until it ends; returns its exit code.
Result<int> follow(TaskConnection& task) {
  while (true) {
    Result<TaskMessage> message = task.receive_by(SteadyClock().now() + kAnswerEvery);
    if (message.status().code() == Code::kDeadlineExceeded) continue;  // a process may be silent
    if (!message.ok()) return message.status();
    if (message->kind == TaskMessage::Kind::kOutput) {
      (void)!write(STDOUT_FILENO, message->bytes.data(), message->bytes.size());
    } else if (message->kind == TaskMessage::Kind::kEnd) {
      return parse_number<int>(message->bytes).value_or(kLostTask);
    }
  }
}

}  // namespace

std::vector<std::string> task_shell_arguments(const std::string& address,
                                              const std::vector<std::pair<std::string, std::string>>& environment,
                                              bool on_gpu, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{kOption, address};
  for (const auto& [name, value] : environment) words.push_back(name + "=" + value);
  words.insert(words.end(), {"--", on_gpu ? "gpu" : "cpu"});
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

bool is_task_shell_command_line(int argc, const char* const* argv) {
  return argc > 4 && std::string_view(argv[1]) == kOption;
}

int task_shell_main(int argc, const char* const* argv) {
  die_with_parent();
  keep_memory_private();
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(signal_number, SIG_IGN);
  if (sodium_init() < 0) return kLostTask;
  const TimePoint deadline = SteadyClock().now() + kConnectTimeout;
  const Result<TaskCommand> command = command_of(std::span(argv, static_cast<std::size_t>(argc)).subspan(3), deadline);
  if (!command.ok()) return fail(command.status());
  Result<TaskConnection> task = connect_to_task(argv[2], deadline);
  if (!task.ok()) return fail(task.status());
  TaskMessage message{TaskMessage::Kind::kCommand, to_bytes(*command)};
  const Status sent = task->send(message, deadline);
  sodium_memzero(message.bytes.data(), message.bytes.size());
  if (!sent.ok()) return fail(sent);
  const Result<int> end = follow(*task);
  return end.ok() ? *end : fail(end.status());
}

}  // namespace syncopate::experiments
