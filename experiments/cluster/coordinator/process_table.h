// ProcessTable: the processes of a run as their parent sees them: which still live, how they ended, how to kill them.
//
// A process is a child, or is carried: started by a child of another name (mpirun), which stands for it until it has
// said hello.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/os/file_descriptor.h"
#include "experiments/cluster/coordinator/verdict.h"
#include "experiments/cluster/launcher/launcher.h"

namespace syncopate::experiments {

class ProcessTable {
 public:
  // Something that has ended: a process of the plan, or what carried some.
  struct Ended {
    std::optional<std::size_t> process;  // index in the plan; none: a carrier
    ProcessEnd end;
    std::string name;      // of the child
    std::string log_file;  // what it printed
  };

  // Owns `children`, which were started for a plan of `processes` processes.
  ProcessTable(std::size_t processes, std::vector<StartedChild> children);
  // Whatever happens, nothing that was started lives on.
  ~ProcessTable();
  ProcessTable(const ProcessTable&) = delete;
  ProcessTable& operator=(const ProcessTable&) = delete;

  // Processes that are not our children.
  const std::vector<std::size_t>& carried() const { return carried_; }
  bool is_carried(std::size_t process) const;
  // A carried process of this host says that this is its pid. It counts only if it is true that a child of ours has
  // started it, be it through others; false, and nothing is watched, where that cannot be seen.
  bool watch_carried(std::size_t process, pid_t pid);
  // Of a process of this host that is our child; none where it is not, or not any more.
  std::optional<pid_t> pid_of_child(std::size_t process) const;

  // Owns one more, which was started in the place of one that has ended.
  void add(StartedChild child) { children_.push_back(std::move(child)); }

  bool empty() const { return children_.empty(); }
  // One of them is readable once something has ended.
  std::vector<int> handles() const;
  // What has ended since the last call. A carrier that ended by itself comes after those that it carried; one that was
  // killed, which they die of, comes before.
  std::vector<Ended> take_ended();

  void kill_process(std::size_t process);
  // Sends any signal to a process of this host. Its pid; none where there is none, or where it has not said hello to be
  // known.
  std::optional<pid_t> signal_process(std::size_t process, int signal);
  void kill_children();

 private:
  std::vector<StartedChild> children_;  // still running
  std::vector<std::size_t> carried_;
  std::vector<FileDescriptor> carried_handles_;  // pidfds, by process; open while one is watched
  std::vector<pid_t> carried_pids_;              // of those
};

}  // namespace syncopate::experiments
