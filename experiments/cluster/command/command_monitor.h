// CommandMonitor: decides what becomes of a run whose workers are a program of the person's own. It sees how processes
// end, and says when those that are left are to be killed, and what ended the run. Pure; used by one thread.
//
// Such a program waits for the others under a deadline of its own (syncopate.torch raises PeerLost), and may compute as
// long as it likes. So nobody is judged by silence: a failure begins the time in which all others must have ended. In
// an elastic run (--elastic) the others go on without a worker that has failed, unless that is worker 0, through which
// they agree on who is left.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/status.h"
#include "experiments/cluster/coordinator/verdict.h"

namespace syncopate::experiments {

class CommandMonitor {
 public:
  struct Options {
    int workers = 1;
    Duration patience{};                    // how long the others have after the first has failed
    std::map<int, std::string> hosts = {};  // those of workers on other hosts, by rank
    bool is_elastic = false;
  };
  explicit CommandMonitor(Options options) : options_(std::move(options)) {}

  // Returns a line for people if the others go on, or have gone on, without this one.
  std::optional<std::string> on_end(int worker, const ProcessEnd& end, TimePoint now);
  void on_interrupt(TimePoint now);
  // The results cannot be written, or a process's file of steps cannot be read.
  void on_failure(const Status& status, TimePoint now);

  // Whether all processes have ended.
  bool is_over() const { return static_cast<int>(ended_.size()) == options_.workers; }
  // Whether those that have not ended are to be killed.
  bool must_kill(TimePoint now) const { return kill_at_ && now >= *kill_at_; }
  // What kept the run from success; none if nothing did. Final once the run is over.
  const std::optional<Verdict>& verdict() const { return verdict_; }

 private:
  std::string name_of(int worker) const;
  std::optional<std::string> loss_of_late(int worker) const;

  struct Failure {
    int worker = 0;
    bool is_consequence = false;  // it has only lost another
  };

  const Options options_;
  std::set<int> ended_;
  std::optional<std::string> last_loss_;  // of a worker that the others have gone on without
  std::optional<TimePoint> kill_at_;
  std::optional<Failure> failure_;  // the one that the verdict names
  bool is_settled_ = false;         // the verdict is another's than a process's
  std::optional<Verdict> verdict_;
};

}  // namespace syncopate::experiments
