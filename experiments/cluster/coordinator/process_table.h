// ProcessTable: the processes of a run as their parent sees them: which still live, how they ended, how to kill them.
//
// A process is a child, or is carried: then a child of another name (mpirun) has started it, and stands for it until it
// has said hello.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/os/file_descriptor.h"
#include "common/os/process_handle.h"
#include "experiments/cluster/coordinator/cluster_runtime.h"
#include "experiments/cluster/host/control_group.h"
#include "experiments/cluster/launcher/launcher.h"

namespace syncopate::experiments {

class ProcessTable {
 public:
  // Owns `children`, which were started for a plan of `processes` processes.
  ProcessTable(std::size_t processes, std::vector<StartedChild> children);
  // Kills everything that was started and still lives.
  ~ProcessTable();
  ProcessTable(const ProcessTable&) = delete;
  ProcessTable& operator=(const ProcessTable&) = delete;

  // Returns the processes that are not our children.
  const std::vector<std::size_t>& carried() const { return carried_; }
  bool is_carried(std::size_t process) const;
  // A carried process of this host reports this pid. It is only accepted if a child of ours has started it, directly or
  // through others. Returns false and watches nothing if that cannot be verified.
  bool watch_carried(std::size_t process, pid_t pid);
  // Returns the pid of a process of this host that is our child, or within one; none if it is not, or not any more.
  std::optional<pid_t> pid_of_child(std::size_t process) const;

  // Takes ownership of one more child, which was started in place of one that has ended.
  void add(StartedChild child);

  bool empty() const { return children_.empty(); }
  // Returns a descriptor that is readable once something has ended.
  int handle() const { return ends_.get(); }
  // Returns what has ended since the last call. A carrier that ended by itself comes after the processes that it
  // carried; a carrier that was killed, which ends them, comes before them. What is within a process comes after it.
  std::vector<EndedChild> take_ended();

  void kill_process(std::size_t process);
  // Sends SIGKILL, SIGSTOP or SIGCONT to a process, and returns its pid, 0 if another host or a task has it; none if
  // there is no such process, or if it is carried and has not said hello yet.
  std::optional<pid_t> signal_process(std::size_t process, int signal);
  void kill_children();

 private:
  // Returns the child that a process is, or is within; null if there is none.
  const StartedChild* child_of(std::size_t process) const;
  void watch(const ProcessHandle& handle);
  void forget(const ProcessHandle& handle);

  FileDescriptor ends_;                 // epoll: readable once one of the handles below is
  std::vector<StartedChild> children_;  // still running
  OomKills oom_kills_;
  std::vector<std::size_t> carried_;
  std::vector<ProcessHandle> carried_handles_;  // by process; open while one is watched
  std::vector<pid_t> carried_pids_;             // their pids
};

}  // namespace syncopate::experiments
