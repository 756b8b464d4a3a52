// RunCheckpoints: passes the coordinator's events to the CheckpointKeeper. If the run writes no checkpoints, its
// methods do nothing.
//
// Used by the coordinator's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "experiments/checkpoint/checkpoint_keeper.h"
#include "experiments/cluster/control/membership_epoch.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

class RunCheckpoints {
 public:
  // `config` outlives this. `has_local_state`: the model keeps something besides
  // its weights.
  RunCheckpoints(const ResolvedRun& config, bool has_local_state)
      : config_(config), has_local_state_(has_local_state) {}

  // Must be called first. Without options the run writes no checkpoints. Fails with resource exhausted if their folder
  // cannot be created.
  Status open(const std::optional<CheckpointKeeperOptions>& options, CheckpointKeeper::Callbacks callbacks,
              Threads& threads);

  // Training begins, or goes on, in this membership epoch.
  void begin(const MembershipEpoch& membership, TimePoint now);
  // A worker has reported that it has finished this many steps.
  void on_steps(int worker, std::int64_t steps_done, TimePoint now);
  // The same for workers that share the job's batches: together they have made this many of its steps.
  void on_job_steps(std::int64_t steps_done, TimePoint now);
  void on_report(const std::string& writer, const CheckpointReport& report);
  void on_worker_lost(int worker);
  // Has one more checkpoint taken, as soon as it can be had. Returns false if there can be none: the run writes none,
  // or training has not begun.
  bool take_last(TimePoint now);
  // Returns the step of that one, once it is complete.
  std::optional<std::int64_t> last_taken() const;
  // Carries out what is due. Call it about every 100 ms.
  void act(TimePoint now);
  // Call it once all processes have ended. Returns none if the run wrote no checkpoints.
  std::optional<CheckpointFigures> finish(TimePoint now);

 private:
  const ResolvedRun& config_;
  const bool has_local_state_;
  std::unique_ptr<CheckpointKeeper> keeper_;
};

}  // namespace syncopate::experiments
