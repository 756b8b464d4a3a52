#include "experiments/cluster/coordinator/process_table.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/os/process_handle.h"
#include "experiments/cluster/process/signal_orders.h"

namespace syncopate::experiments {
namespace {

bool holds(const StartedChild& child, std::size_t process) {
  return child.process == process || std::ranges::find(child.within, process) != child.within.end();
}

bool descends_from(pid_t pid, pid_t ancestor) {
  while (pid > 1 && pid != ancestor) pid = parent_of(pid);
  return pid == ancestor;
}

}  // namespace

ProcessTable::ProcessTable(std::size_t processes, std::vector<StartedChild> children)
    : ends_(epoll_create1(EPOLL_CLOEXEC)),
      children_(std::move(children)),
      carried_handles_(processes),
      carried_pids_(processes) {
  for (const StartedChild& child : children_) watch(child.handle);
  for (std::size_t i = 0; i < processes; ++i) {
    if (child_of(i) == nullptr) carried_.push_back(i);
  }
}

ProcessTable::~ProcessTable() { kill_and_reap(children_); }

const StartedChild* ProcessTable::child_of(std::size_t process) const {
  const auto child = std::ranges::find_if(children_, [&](const StartedChild& each) { return holds(each, process); });
  return child == children_.end() ? nullptr : &*child;
}

bool ProcessTable::is_carried(std::size_t process) const {
  return std::ranges::find(carried_, process) != carried_.end();
}

// The handle is opened first: as long as it does not report an end, the pid still belongs to this process.
bool ProcessTable::watch_carried(std::size_t process, pid_t pid) {
  Result<ProcessHandle> handle = ProcessHandle::of(pid);
  const auto is_below = [&](const StartedChild& child) { return descends_from(pid, child.pid); };
  if (!handle.ok() || std::ranges::none_of(children_, is_below) || handle->has_ended()) return false;
  carried_pids_[process] = pid;
  carried_handles_[process] = std::move(*handle);
  watch(carried_handles_[process]);
  return true;
}

std::optional<pid_t> ProcessTable::pid_of_child(std::size_t process) const {
  const StartedChild* const child = child_of(process);
  return child == nullptr || child->is_remote_shell ? std::nullopt : std::optional(child->pid);
}

void ProcessTable::add(StartedChild child) {
  children_.push_back(std::move(child));
  watch(children_.back().handle);
}

void ProcessTable::watch(const ProcessHandle& handle) {
  epoll_event event{.events = EPOLLIN, .data = {}};
  epoll_ctl(ends_.get(), EPOLL_CTL_ADD, handle.descriptor(), &event);
}

// Closing it would not do: somebody else may have a copy of it.
void ProcessTable::forget(const ProcessHandle& handle) {
  epoll_ctl(ends_.get(), EPOLL_CTL_DEL, handle.descriptor(), nullptr);
}

std::vector<EndedChild> ProcessTable::take_ended() {
  std::vector<EndedChild> ended, carriers;
  if (!is_readable(ends_.get())) return ended;
  std::erase_if(children_, [&](const StartedChild& child) {
    int status = 0;
    if (waitpid(child.pid, &status, WNOHANG) != child.pid) return false;
    forget(child.handle);
    EndedChild one{child.process, end_of(status, child.is_remote_shell), child.name, child.log_file};
    one.end.out_of_memory = one.end.signal == SIGKILL && !child.is_remote_shell && oom_kills_.explain_one();
    std::vector<EndedChild>& those = child.process || one.end.signal ? ended : carriers;
    those.push_back(one);
    for (const std::size_t member : child.within) {
      one.process = member;
      those.push_back(one);
    }
    return true;
  });
  for (std::size_t process : carried_) {
    ProcessHandle& handle = carried_handles_[process];
    if (!handle.open() || !handle.has_ended()) continue;
    forget(handle);
    handle = ProcessHandle();
    ended.push_back({process, {}, {}, {}});  // only its parent knows how it ended
  }
  ended.insert(ended.end(), std::make_move_iterator(carriers.begin()), std::make_move_iterator(carriers.end()));
  return ended;
}

void ProcessTable::kill_process(std::size_t process) {
  if (carried_handles_[process].open()) {
    (void)carried_handles_[process].send(SIGKILL);
    return;
  }
  for (StartedChild& child : children_) {
    if (holds(child, process) || (!child.process && is_carried(process))) end_child(child);
  }
}

std::optional<pid_t> ProcessTable::signal_process(std::size_t process, int signal) {
  if (carried_handles_[process].open()) {
    const bool sent = carried_handles_[process].send(signal) == 0;
    return sent ? std::optional(carried_pids_[process]) : std::nullopt;
  }
  const StartedChild* const child = child_of(process);
  if (child == nullptr) return std::nullopt;
  if (!child->is_remote_shell) return kill(child->pid, signal) == 0 ? std::optional(child->pid) : std::nullopt;
  const std::string order = signal_order(signal);
  const auto size = static_cast<ssize_t>(order.size());
  return write(child->input.get(), order.data(), order.size()) == size ? std::optional<pid_t>(0) : std::nullopt;
}

void ProcessTable::kill_children() {
  for (StartedChild& child : children_) end_child(child);
}

}  // namespace syncopate::experiments
