// CommandProcess: one worker of a run that is a program of the person's own, as run_experiment sees it: a child, or, in
// a run on several hosts, a program below a relay (relay.h) on this host or another. What it prints and what it tells
// of its steps comes into files here in both cases. Used by one thread.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "common/step_file.h"
#include "common/transport/secret_text.h"
#include "experiments/cluster/command/relay_connection.h"
#include "experiments/cluster/coordinator/verdict.h"
#include "experiments/cluster/host/control_group.h"
#include "experiments/cluster/launcher/launcher.h"

namespace syncopate::experiments {

struct CommandStart {
  const JobPlan& plan;
  const ProcessSpec& process;
  const std::string& program;        // this executable
  const std::string& log_directory;  // receives worker-1.log and, until the process is destroyed, worker-1.steps
};

class CommandProcess {
 public:
  // Both fail if the process cannot be started. Rank 0 listens at `master_port` of this host.
  static Result<std::unique_ptr<CommandProcess>> start_here(const CommandStart& start, int master_port);
  // Its program waits for begin(). `secret`: the run's, as a line with its line break.
  static Result<std::unique_ptr<CommandProcess>> start_below_relay(const CommandStart& start, const SecretText& secret);
  // Kills it, and waits for its end.
  ~CommandProcess();

  const std::string& name() const { return child_.name; }
  bool has_ended() const { return has_ended_; }
  // Appends the descriptors that are readable once there is something to take.
  void add_handles(std::vector<pollfd>& items) const;

  // Takes what its relay has sent, if it has one; what is wrong with that, failure() keeps.
  void exchange(const Clock& clock);
  const Status& failure() const { return failure_; }
  // Whether its program can begin, and where others reach its host. Requires a relay.
  std::optional<RelayReady> ready() const { return relay_->ready(); }
  // Lets its program begin; once.
  void begin(const RelayReady& rank_0);

  // Returns how it has ended, once. All that it has printed and told lies in the files then, and whatever it has left
  // in its process group is killed, below a relay whatever it has left at all.
  std::optional<ProcessEnd> take_end(const Clock& clock);
  // Returns what it has told since the last call, with times by this host's clock. Fails as StepFileReader does.
  Result<std::vector<StepFileEntry>> take_told();

  // Asks its program to end.
  void interrupt();
  // Kills its program; a relay does so as soon as it can. With `shell`, what stands here for a relay is killed, too.
  void kill(bool shell);

  // The program's peak memory in bytes, once it has ended, if it could be told.
  std::optional<std::int64_t> peak_memory() const { return peak_memory_; }
  // How far times that take_told() has returned may be wrong, if they are of another host.
  std::optional<Duration> clock_uncertainty() const { return clock_uncertainty_; }

 private:
  CommandProcess(StartedChild child, std::string step_file, std::optional<RelayConnection> relay);

  ProcessEnd end_of(int status);

  StartedChild child_;
  OomKills oom_kills_;
  const std::string step_file_;
  StepFileReader steps_;
  std::optional<RelayConnection> relay_;
  Status failure_;
  bool has_ended_ = false;
  std::optional<std::int64_t> peak_memory_;
  std::optional<Duration> clock_uncertainty_;
};

}  // namespace syncopate::experiments
