#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "common/os/resource_limits.h"
#include "common/os/signal_actions.h"
#include "experiments/cluster/launcher/launcher.h"
#include "experiments/cluster/starter.h"

extern char** environ;

namespace syncopate::experiments {
namespace {

constexpr int kGuardEndsWithinMs = 10'000;

// Returns texts in the form of C: pointers into `texts`, with a null at the end.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

using EnvironmentVariables = std::vector<std::pair<std::string, std::string>>;

std::vector<std::string> environment_with(const EnvironmentVariables& additions) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : additions) replaced |= text.starts_with(name + "=");
    if (!replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : additions) all.push_back(name + "=" + value);
  return all;
}

// A pipe that contains `text`.
struct Input {
  FileDescriptor read_end;
  FileDescriptor write_end;
};

Result<Input> input_of(std::string_view text) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    const int error = errno;
    return Status(error == EMFILE ? Code::kResourceExhausted : Code::kInternal,
                  fmt::format("cannot make a pipe: {}{}", strerror(error), limit_behind(error)));
  }
  Input input{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  // The text fits: a pipe holds at least 4 KiB.
  if (write(input.write_end.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return Status::internal(fmt::format("cannot write to a pipe: {}", strerror(errno)));
  }
  return input;
}

class LocalLauncher final : public Launcher {
 public:
  Result<std::vector<StartedChild>> start(const JobPlan& plan, const LaunchOptions& options) override {
    std::vector<StartedChild> children;
    for (std::size_t i = 0; i < plan.processes.size(); ++i) {
      Result<StartedChild> child = start_again(plan, options, i, 0);
      if (!child.ok()) {
        kill_and_reap(children);
        return child.status();
      }
      children.push_back(std::move(*child));
    }
    return children;
  }

  Result<StartedChild> start_again(const JobPlan& plan, const LaunchOptions& options, std::size_t i,
                                   int incarnation) override {
    const ProcessSpec& process = plan.processes[i];
    const bool is_elsewhere = process.remote || !process.task.empty();
    std::vector<std::string> more{"--rendezvous=" + options.rendezvous};
    if (incarnation > 0) more.push_back(fmt::format("--incarnation={}", incarnation));
    Result<StartedChild> child =
        start_child(command_line_of(plan, process, options.program, more),
                    is_elsewhere ? EnvironmentVariables() : process.environment, process.name(),
                    options.log_directory + "/" + log_name_of(process), options.secret.view());
    if (!child.ok()) return child;
    child->process = i;
    child->is_remote_shell = is_elsewhere;
    // A remote shell and its guard end with their input, and take orders from it, as a task's shell does; a process on
    // this host needs no more input.
    if (!is_elsewhere) child->input = FileDescriptor();
    return child;
  }
};

}  // namespace

Result<StartedChild> start_child(const std::vector<std::string>& command,
                                 const std::vector<std::pair<std::string, std::string>>& environment,
                                 const std::string& name, const std::string& log_file,
                                 std::optional<std::string_view> text, std::optional<int> output) {
  std::vector<std::string> arguments = command;
  EnvironmentVariables with_starter = environment;
  with_starter.push_back(named_starter(getpid()));
  std::vector<std::string> variables = environment_with(with_starter);
  Input input;
  if (text) {
    Result<Input> made = input_of(*text);
    if (!made.ok()) return made.status().in(name);
    input = std::move(*made);
  }

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (!text) {
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  } else {
    posix_spawn_file_actions_adddup2(&files, input.read_end.get(), STDIN_FILENO);
  }
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  posix_spawn_file_actions_adddup2(&files, output.value_or(STDERR_FILENO), STDOUT_FILENO);

  // A child begins with no signal blocked and in a process group of its own.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  // A child such as a remote shell must end when its pipe is closed; this program must not.
  const sigset_t defaults = default_in_programs();
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);

  StartedChild child{.name = name, .log_file = log_file, .input = std::move(input.write_end)};
  const int error = posix_spawnp(&child.pid, arguments[0].c_str(), &files, &attributes, pointers_to(arguments).data(),
                                 pointers_to(variables).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return Status(error == EAGAIN || error == ENOMEM ? Code::kResourceExhausted : Code::kInternal,
                  fmt::format("cannot start {} ({}, output to {}): {}{}", name, arguments[0], log_file, strerror(error),
                              limit_behind(error)));
  }
  child.handle = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0)));
  if (!child.handle.open()) {
    const int reason = errno;
    kill(child.pid, SIGKILL);
    waitpid(child.pid, nullptr, 0);
    return Status(reason == EMFILE ? Code::kResourceExhausted : Code::kInternal,
                  fmt::format("cannot watch {} (pidfd_open): {}{}", name, strerror(reason), limit_behind(reason)));
  }
  return child;
}

// A process that a remote shell has started ends with its input, even if others hold the shell's own end open.
void end_child(StartedChild& child) {
  child.input = FileDescriptor();
  if (!child.is_guard) kill(child.pid, SIGKILL);
}

void reap(const StartedChild& child) {
  pollfd item{.fd = child.handle.get(), .events = POLLIN, .revents = 0};
  if (child.is_guard && poll(&item, 1, kGuardEndsWithinMs) <= 0) kill(child.pid, SIGKILL);
  waitpid(child.pid, nullptr, 0);
}

void kill_and_reap(std::vector<StartedChild>& children) {
  for (StartedChild& child : children) end_child(child);
  for (const StartedChild& child : children) reap(child);
}

std::string log_name_of(const ProcessSpec& process) {
  return fmt::format("{}-{}.log", name_of(process.role), process.rank);
}

std::string last_line_of(const std::string& log_file) {
  std::ifstream lines(log_file);
  std::string line, last = "it printed nothing";
  while (std::getline(lines, line)) {
    if (line.find_first_not_of(" \t-") != std::string::npos) last = line;
  }
  return last + " (" + log_file + ")";
}

std::unique_ptr<Launcher> make_local_launcher() { return std::make_unique<LocalLauncher>(); }

}  // namespace syncopate::experiments
