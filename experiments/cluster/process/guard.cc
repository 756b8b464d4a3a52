#include "experiments/cluster/process/guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "common/os/file_descriptor.h"
#include "common/os/process_handle.h"
#include "common/os/signal_actions.h"
#include "experiments/cluster/process/descendants.h"
#include "experiments/cluster/process/loopback_binds.h"
#include "experiments/cluster/process/private_memory.h"
#include "experiments/cluster/process/process_main.h"
#include "experiments/cluster/process/signal_orders.h"
#include "experiments/cluster/starter.h"

namespace syncopate::experiments {
namespace {

constexpr std::chrono::seconds kGrace{3};  // mpirun takes 1.5 s to end its processes and itself
constexpr std::string_view kRemote = "--guard", kLocal = "--local-guard", kLoopback = "--loopback-guard";

[[noreturn]] void become(char** command, int input, pid_t guard) {
  take_default_actions(default_in_programs());
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guard) _exit(kNotStarted);  // the guard has died in the meantime
  dup2(input, STDIN_FILENO);
  execvp(command[0], command);
  std::fprintf(stderr, "cannot start %s: %s\n", command[0], std::strerror(errno));
  _exit(kNotStarted);
}

// Passes standard input on to `output`, but for orders to signal the process; returns false at its end. The process may
// have closed its own.
bool pass_on(FileDescriptor& output, SignalOrders& orders, pid_t process) {
  char bytes[4096];
  const ssize_t count = read(STDIN_FILENO, bytes, sizeof(bytes));
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  const std::size_t left = orders.take(std::span(bytes, static_cast<std::size_t>(count)),
                                       [process](int signal_number) { kill(process, signal_number); });
  if (left > 0 && output.open() && write(output.get(), bytes, left) != static_cast<ssize_t>(left)) {
    output = FileDescriptor();
  }
  explicit_bzero(bytes, sizeof(bytes));  // the run's keys were in it
  return count > 0;
}

}  // namespace

bool is_guard_command_line(int argc, const char* const* argv) {
  return argc > 2 && (argv[1] == kRemote || argv[1] == kLocal || argv[1] == kLoopback);
}

int guard_main(int argc, char** argv) {
  keep_memory_private();
  adopt_orphans();
  // A process of a run leaves SIGTERM to the coordinator, and so does its guard.
  const bool is_of_run = is_process_command_line(argc - 2, argv + 2);
  signal(SIGINT, SIG_IGN);
  let_writes_fail();
  if (is_of_run) signal(SIGTERM, SIG_IGN);
  std::optional<LoopbackBinds> binds;
  if (argv[1] == kLoopback) {
    Result<LoopbackBinds> begun = LoopbackBinds::begin();
    if (!begun.ok()) {
      std::fprintf(stderr, "the kernel cannot keep %s to the loopback interface, with seccomp: %s\n", argv[2],
                   begun.status().message().c_str());
      return kNotStarted;
    }
    binds.emplace(std::move(*begun));
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return kNotStarted;
  FileDescriptor input(ends[0]), output(ends[1]);
  const pid_t guard = getpid(), process = fork();
  if (process == 0) become(argv + 2, input.get(), guard);
  if (process < 0) return kNotStarted;
  input = FileDescriptor();
  const Result<ProcessHandle> handle = ProcessHandle::of(process);
  if (!handle.ok()) {
    std::fprintf(stderr, "cannot watch %s: %s\n", argv[2], handle.status().message().c_str());
    kill(process, SIGKILL);
    return kNotStarted;
  }
  pollfd items[] = {{.fd = handle->descriptor(), .events = POLLIN, .revents = 0},
                    {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                    {.fd = binds ? binds->handle() : -1, .events = POLLIN, .revents = 0}};
  SignalOrders orders;
  while (items[0].revents == 0) {
    ready_before(kNoDeadline, items);
    if ((items[2].revents & POLLIN) != 0) binds->answer();
    if (items[1].revents == 0 || pass_on(output, orders, process)) continue;
    if (!is_of_run) kill(process, SIGTERM);
    if (is_of_run || !handle->ends_before(SteadyClock().now() + kGrace)) kill(process, SIGKILL);
    break;
  }
  int status = 0;
  waitpid(process, &status, 0);
  kill_descendants();
  if (WIFSIGNALED(status) && argv[1] != kRemote) raise(WTERMSIG(status));
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace syncopate::experiments
