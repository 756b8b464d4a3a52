// ScriptProcesses: the processes of a script whose ranks take part in a simulated run. One begins the script; where
// that has imported torch, it becomes as many as the run has workers (python/syncopate/_ranks.py).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/os/child_process.h"
#include "experiments/cluster/coordinator/interrupts.h"
#include "experiments/cluster/launcher/launcher.h"
#include "experiments/cluster/script/script_link.h"

namespace syncopate::experiments {

struct ScriptStart {
  const ResolvedRun& config;
  const JobPlan& plan;               // of the program: a process for each rank
  const std::string& program;        // this executable
  const std::string& log_directory;  // receives what ranks print: script-1.log
};

class ScriptProcesses {
 public:
  struct Arrival {
    int rank;
    ScriptLink link;
    std::vector<SharedMemory> memory;  // of operations of all ranks; of weights and gradients
  };

  // All that `start` refers to, and the interrupts, outlive it.
  ScriptProcesses(const ScriptStart& start, Interrupts& interrupts, ScriptDoor door)
      : start_(start), interrupts_(interrupts), door_(std::move(door)) {}
  // Ends all of them.
  ~ScriptProcesses();

  // Fails if the program cannot be started.
  Status begin();
  std::string log_of(int rank) const;

  // Takes new connections, and what the first process says of ranks that have ended. Does not wait.
  Status look();
  // The ranks that look() has found since the last call.
  std::vector<Arrival> take_arrived() { return std::exchange(arrived_, {}); }
  // Waits in real time until something has come, here or on one of `links`, or until the deadline or a tick has passed.
  // False: an interrupt has come.
  bool wait(std::span<const ScriptLink* const> links, TimePoint deadline);

  // Fails where the script has ended without having become ranks.
  Status check_begins() const;
  // How the process of a rank has ended whose connection is closed. Fails with peer lost where it has ended badly.
  Status end_of(int rank);
  void kill();

 private:
  // Whether the process on this connection has said which it is.
  Result<bool> take_arrival(ScriptLink& link);
  Status failure_of(int rank, int status) const;

  const ScriptStart start_;
  Interrupts& interrupts_;
  const SteadyClock clock_;
  ScriptDoor door_;
  std::vector<ScriptLink> unknown_;  // connections that have not said who they are
  std::vector<Arrival> arrived_;
  std::optional<ScriptLink> parent_;  // of the process that has begun the script
  std::map<int, int> ended_;          // ranks' statuses, as waitpid(2) gives them
  std::optional<StartedChild> child_;
};

}  // namespace syncopate::experiments
