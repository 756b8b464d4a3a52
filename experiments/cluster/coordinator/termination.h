// Termination: how a run ends when it is asked to. By SIGTERM, which schedulers send some time before they kill, it
// takes one more checkpoint and then ends, within its grace time; by anything else, or if there can be no checkpoint,
// or when asked again, at once. A run that is over before that ends as ever.
//
// Used by the coordinator's thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/clock.h"
#include "experiments/cluster/coordinator/run_checkpoints.h"
#include "experiments/cluster/coordinator/run_monitor.h"

namespace syncopate::experiments {

class Termination {
 public:
  using Report = std::function<void(const std::string& line)>;

  // What it refers to outlives this. No grace: it ends at once.
  Termination(double grace_seconds, RunMonitor& monitor, RunCheckpoints& checkpoints, Report report)
      : grace_seconds_(grace_seconds), monitor_(monitor), checkpoints_(checkpoints), report_(std::move(report)) {}

  // A signal has arrived.
  void on_signal(int signal, TimePoint now);
  // Ends the run once the checkpoint is complete, or the time is over. Call it after RunCheckpoints::act().
  void act(TimePoint now);

 private:
  const double grace_seconds_;
  RunMonitor& monitor_;
  RunCheckpoints& checkpoints_;
  const Report report_;
  std::optional<TimePoint> deadline_;  // set by the first SIGTERM
};

}  // namespace syncopate::experiments
