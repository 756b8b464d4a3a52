#include "experiments/cluster/tasks/task_shell.h"

#include <fmt/format.h>
#include <signal.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

#include "common/launch/rank_variables.h"
#include "common/os/readiness.h"
#include "common/os/signal_actions.h"
#include "common/text/number.h"
#include "experiments/cluster/plan/started_lines.h"
#include "experiments/cluster/process/private_memory.h"
#include "experiments/cluster/process/shared_keys.h"
#include "experiments/cluster/process/signal_orders.h"
#include "experiments/cluster/starter.h"
#include "experiments/cluster/tasks/task_address.h"
#include "experiments/cluster/tasks/task_command.h"

namespace syncopate::experiments {
namespace {

constexpr int kLostTask = 255;  // as ssh
constexpr Duration kConnectTimeout = std::chrono::seconds(10);
constexpr Duration kOrderTimeout = std::chrono::seconds(5);

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

// Passes orders to signal the process on to the task; returns false at the end of standard input.
bool pass_orders_on(TaskConnection& task, SignalOrders& orders) {
  char bytes[64];
  const ssize_t count = read(STDIN_FILENO, bytes, sizeof(bytes));
  if (count <= 0) return count < 0 && errno == EINTR;
  orders.take(std::span(bytes, static_cast<std::size_t>(count)), [&task](int signal_number) {
    (void)task.send({TaskMessage::Kind::kSignal, std::to_string(signal_number)}, SteadyClock().now() + kOrderTimeout);
  });
  return true;
}

// Writes what the process prints until it ends; returns its exit code.
Result<int> follow(TaskConnection& task) {
  SignalOrders orders;
  pollfd items[] = {{task.descriptor(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
  while (true) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<TaskMessage> message, task.receive());
    if (!message) {
      ready_before(kNoDeadline, items);
      if (items[1].revents != 0 && !pass_orders_on(task, orders)) items[1].fd = -1;
    } else if (message->kind == TaskMessage::Kind::kOutput) {
      (void)!write(STDOUT_FILENO, message->bytes.data(), message->bytes.size());
    } else if (message->kind == TaskMessage::Kind::kEnd) {
      return parse_number<int>(message->bytes).value_or(kLostTask);
    }
  }
}

}  // namespace

bool is_task_shell_command_line(int argc, const char* const* argv) {
  return argc > 4 && std::string_view(argv[1]) == kTaskShellWord;
}

int task_shell_main(int argc, const char* const* argv) {
  die_with_parent();
  keep_memory_private();
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP}) signal(signal_number, SIG_IGN);
  let_writes_fail();
  if (sodium_init() < 0) return kLostTask;
  const TimePoint deadline = SteadyClock().now() + kConnectTimeout;
  const Result<TaskCommand> command = command_of(std::span(argv, static_cast<std::size_t>(argc)).subspan(3), deadline);
  if (!command.ok()) return fail(command.status());
  const char* const secret_file = std::getenv(kSecretFile);
  Result<TaskConnection> task = connect_to_task(argv[2], secret_file == nullptr ? "" : secret_file, deadline);
  if (!task.ok()) return fail(task.status());
  TaskMessage message{TaskMessage::Kind::kCommand, to_bytes(*command)};
  const Status sent = task->send(message, deadline);
  sodium_memzero(message.bytes.data(), message.bytes.size());
  if (!sent.ok()) return fail(sent);
  const Result<int> end = follow(*task);
  return end.ok() ? *end : fail(end.status());
}

}  // namespace syncopate::experiments
