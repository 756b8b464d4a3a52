#include "experiments/coordinator/process_table.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace syncopate::experiments {
namespace {

bool readable(const FileDescriptor& handle) {
  pollfd item{.fd = handle.get(), .events = POLLIN, .revents = 0};
  return poll(&item, 1, 0) > 0;
}

constexpr int kSignalled = 128;    // how a shell says that a signal ended what it ran: this and the signal
constexpr int kShellFailed = 255;  // how ssh says that it has lost touch

ProcessEnd end_of(int status, bool is_remote_shell) {
  ProcessEnd end;
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (!is_remote_shell) return end;
  const int code = end.exit_code.value_or(kShellFailed);
  if (code > kSignalled && code < kShellFailed) return {.exit_code = {}, .signal = code - kSignalled};
  end.of_remote_shell = code == kShellFailed;
  return end;
}

}  // namespace

ProcessTable::ProcessTable(std::size_t processes, std::vector<StartedChild> children)
    : children_(std::move(children)), carried_handles_(processes), carried_pids_(processes) {
  for (std::size_t i = 0; i < processes; ++i) {
    if (std::ranges::find(children_, i, &StartedChild::process) == children_.end()) carried_.push_back(i);
  }
}

ProcessTable::~ProcessTable() { kill_and_reap(children_); }

bool ProcessTable::is_carried(std::size_t process) const {
  return std::ranges::find(carried_, process) != carried_.end();
}

void ProcessTable::watch_carried(std::size_t process, pid_t pid) {
  carried_pids_[process] = pid;
  carried_handles_[process] = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

std::vector<int> ProcessTable::handles() const {
  std::vector<int> handles;
  for (const StartedChild& child : children_) handles.push_back(child.handle.get());
  for (const FileDescriptor& handle : carried_handles_) {
    if (handle.open()) handles.push_back(handle.get());
  }
  return handles;
}

std::vector<ProcessTable::Ended> ProcessTable::take_ended() {
  std::vector<Ended> ended, carriers;
  std::erase_if(children_, [&](const StartedChild& child) {
    int status = 0;
    if (waitpid(child.pid, &status, WNOHANG) != child.pid) return false;
    Ended one{child.process, end_of(status, child.is_remote_shell), child.name, child.log_file};
    (child.process || one.end.signal ? ended : carriers).push_back(std::move(one));
    return true;
  });
  for (std::size_t process : carried_) {
    FileDescriptor& handle = carried_handles_[process];
    if (!handle.open() || !readable(handle)) continue;
    handle = FileDescriptor();
    ended.push_back({process, {}, {}, {}});  // how it ended is known to its own parent alone
  }
  ended.insert(ended.end(), std::make_move_iterator(carriers.begin()), std::make_move_iterator(carriers.end()));
  return ended;
}

void ProcessTable::kill_process(std::size_t process) {
  if (carried_handles_[process].open()) {
    syscall(SYS_pidfd_send_signal, carried_handles_[process].get(), SIGKILL, nullptr, 0);
    return;
  }
  for (StartedChild& child : children_) {
    if (child.process == process || (!child.process && is_carried(process))) end_child(child);
  }
}

std::optional<pid_t> ProcessTable::signal_process(std::size_t process, int signal) {
  if (carried_handles_[process].open()) {
    const bool sent = syscall(SYS_pidfd_send_signal, carried_handles_[process].get(), signal, nullptr, 0) == 0;
    return sent ? std::optional(carried_pids_[process]) : std::nullopt;
  }
  const auto child = std::ranges::find(children_, process, &StartedChild::process);
  if (child == children_.end() || child->is_remote_shell || kill(child->pid, signal) != 0) return std::nullopt;
  return child->pid;
}

void ProcessTable::kill_children() {
  for (StartedChild& child : children_) end_child(child);
}

}  // namespace syncopate::experiments
