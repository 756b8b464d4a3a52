// ClusterRuntime: the processes of a run as the coordinator sees them: it starts, signals and kills them, exchanges
// messages with them, and waits for news of them. In one they are processes of this and other hosts (host_runtime.h),
// in another the actors of a simulated cluster.
//
// Used by the coordinator's thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/threads.h"
#include "experiments/cluster/control/control_server.h"
#include "experiments/cluster/coordinator/verdict.h"

namespace syncopate::experiments {

// Something that has ended: a process of the plan, or a child that carried some (mpirun).
struct EndedChild {
  std::optional<std::size_t> process;  // index in the plan; none: a carrier
  ProcessEnd end;
  std::string name;      // name of the child
  std::string log_file;  // its output
};

class ClusterRuntime {
 public:
  virtual ~ClusterRuntime() = default;

  // The coordinator's; its clock is that of all time stamps.
  virtual Threads& threads() = 0;
  virtual ControlServer& control() = 0;

  // Starts every process of the plan, or none. Called once, first.
  virtual Status start() = 0;
  // Starts a process that has ended anew. What the one before has sent is ignored from now on. Fails with invalid
  // argument if that cannot be done.
  virtual Status start_again(std::size_t process) = 0;

  // Returns the pid of a process that says hello under this pid; none if it is no process that this run has started.
  virtual std::optional<pid_t> check_hello(std::size_t process, pid_t pid) = 0;

  // Returns whether everything that was started has ended, and take_ended() has returned it.
  virtual bool empty() const = 0;
  // Returns what has ended since the last call. A carrier that ended by itself comes after the processes that it
  // carried; a carrier that was killed, which ends them, comes before them.
  virtual std::vector<EndedChild> take_ended() = 0;
  // Returns the processes that a carrier has started.
  virtual std::vector<std::size_t> carried() const = 0;

  virtual void kill_process(std::size_t process) = 0;
  // Sends SIGKILL, SIGSTOP or SIGCONT to a process, and returns its pid, 0 if another host or a task has it; none if
  // there is no such process, or if it is carried and has not said hello yet.
  virtual std::optional<pid_t> signal_process(std::size_t process, int signal) = 0;
  virtual void kill_all() = 0;

  // Wait at most this long, for any news, or for a message alone.
  virtual void wait_for_news(Duration at_most) = 0;
  virtual void wait_for_message(Duration at_most) = 0;
  // Returns the signal (SIGINT, SIGTERM, SIGHUP) by which a person or a scheduler has asked since the last call to end
  // the run, if they have.
  virtual std::optional<int> take_interrupt() = 0;
  // Returns, once, what this program has run out of and a person should know; empty: nothing.
  virtual std::string take_shortage() = 0;
};

}  // namespace syncopate::experiments
