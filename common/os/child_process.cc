#include "common/os/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "common/os/resource_limits.h"
#include "common/os/signal_actions.h"

namespace syncopate {
namespace {

// Returns texts in the form of C: pointers into `texts`, with a null at the end.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

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

}  // namespace

Result<ChildProcess> spawn(const ChildOptions& options) {
  std::vector<std::string> arguments = options.command;
  std::vector<std::string> variables = environment_with(options.environment);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (options.input) {
    posix_spawn_file_actions_adddup2(&files, *options.input, STDIN_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  if (!options.error_file.empty()) {
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, options.error_file.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0666);
  }
  posix_spawn_file_actions_adddup2(&files, options.output.value_or(STDERR_FILENO), STDOUT_FILENO);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  const sigset_t defaults = default_in_programs();
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                           (options.own_group ? POSIX_SPAWN_SETPGROUP : 0)));

  ChildProcess child;
  const int error = posix_spawnp(&child.pid, arguments[0].c_str(), &files, &attributes, pointers_to(arguments).data(),
                                 pointers_to(variables).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return Status(error == EAGAIN || error == ENOMEM ? Code::kResourceExhausted : Code::kInternal,
                  fmt::format("{}{}", std::strerror(error), limit_behind(error)));
  }
  Result<ProcessHandle> handle = ProcessHandle::of(child.pid);
  if (!handle.ok()) {
    kill(child.pid, SIGKILL);
    waitpid(child.pid, nullptr, 0);
    return handle.status();
  }
  child.handle = std::move(*handle);
  return child;
}

}  // namespace syncopate
