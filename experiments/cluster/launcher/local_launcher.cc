#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "common/os/child_process.h"
#include "common/os/resource_limits.h"
#include "experiments/cluster/launcher/launcher.h"
#include "experiments/cluster/starter.h"

namespace syncopate::experiments {
namespace {

constexpr std::chrono::seconds kGuardEndsWithin{10};

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
      if (plan.processes[i].within) continue;
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
    child->within = members_within(plan, i);
    child->is_remote_shell = is_elsewhere;
    // A remote shell and its guard end with their input, and take orders from it, as a task's shell does; a process on
    // this host needs no more input.
    if (!is_elsewhere) child->input = FileDescriptor();
    return child;
  }
};

}  // namespace

Result<StartedChild> start_child(const std::vector<std::string>& command, const EnvironmentVariables& environment,
                                 const std::string& name, const std::string& log_file,
                                 std::optional<std::string_view> text, std::optional<int> output) {
  Input input;
  if (text) {
    Result<Input> made = input_of(*text);
    if (!made.ok()) return made.status().in(name);
    input = std::move(*made);
  }

  ChildOptions options{.command = command,
                       .environment = environment,
                       .input = text ? std::optional(input.read_end.get()) : std::nullopt,
                       .error_file = log_file,
                       .output = output,
                       .own_group = true};
  options.environment.push_back(named_starter(getpid()));
  Result<ChildProcess> child = spawn(options);
  if (!child.ok()) {
    return Status(child.status().code(), fmt::format("cannot start {} ({}, output to {}): {}", name, command.front(),
                                                     log_file, child.status().message()));
  }
  return StartedChild{.pid = child->pid,
                      .handle = std::move(child->handle),
                      .process = {},
                      .name = name,
                      .log_file = log_file,
                      .input = std::move(input.write_end)};
}

// A process that a remote shell has started ends with its input, even if others hold the shell's own end open.
void end_child(StartedChild& child) {
  child.input = FileDescriptor();
  if (!child.is_guard) kill(child.pid, SIGKILL);
}

void reap(const StartedChild& child) {
  if (child.is_guard && !child.handle.ends_before(SteadyClock().now() + kGuardEndsWithin)) kill(child.pid, SIGKILL);
  waitpid(child.pid, nullptr, 0);
}

void kill_and_reap(std::vector<StartedChild>& children) {
  for (StartedChild& child : children) end_child(child);
  for (const StartedChild& child : children) reap(child);
}

std::string log_name_of(const ProcessSpec& process) {
  return fmt::format("{}-{}.log", name_of(process.role), process.rank);
}

std::string last_words_of(const std::string& log_file) {
  std::ifstream lines(log_file);
  std::string line, last = "it printed nothing", raised;
  bool is_in_traceback = false;  // of Python, whose exception may have several lines, and its name in the first
  while (std::getline(lines, line)) {
    if (line.find_first_not_of(" \t-") == std::string::npos) continue;
    last = line;
    if (line.starts_with("Traceback (most recent call last):")) {
      is_in_traceback = true;
    } else if (is_in_traceback && line.front() != ' ') {
      raised = line;
      is_in_traceback = false;
    }
  }
  const std::string before = raised.empty() || raised == last ? "" : raised + " ... ";
  return before + last + " (" + log_file + ")";
}

std::unique_ptr<Launcher> make_local_launcher() { return std::make_unique<LocalLauncher>(); }

}  // namespace syncopate::experiments
