// RunCheckpoints: what the coordinator tells the keeper of checkpoints, where the run writes any. Where it writes none,
// nothing happens.
//
// Used by the coordinator's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "experiments/checkpoint/checkpoint_keeper.h"
#include "experiments/cluster/control/generation.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

class RunCheckpoints {
 public:
  // `config` has been through resolve(), and outlives this. `has_local_state`: the model keeps something beside its
  // weights.
  RunCheckpoints(const RunConfig& config, bool has_local_state) : config_(config), has_local_state_(has_local_state) {}

  // Before anything else. Without options the run writes none. Fails with resource exhausted where their folder cannot
  // be made.
  Status open(const std::optional<CheckpointKeeperOptions>& options, CheckpointKeeper::Callbacks callbacks);

  // Training begins, or goes on, in this generation.
  void begin(const Generation& generation, TimePoint now);
  // A worker has been heard to have finished so many steps.
  void on_steps(int worker, std::int64_t steps_done, TimePoint now);
  // The same where workers share the job's batches: all of them together have made so many of its steps.
  void on_job_steps(std::int64_t steps_done, TimePoint now);
  void on_report(const std::string& writer, const CheckpointReport& report);
  void on_worker_lost(int worker);
  // Does what is due. To be called about every 100 ms.
  void act(TimePoint now);
  // Once all processes have ended; none where the run wrote none.
  std::optional<CheckpointFigures> finish(TimePoint now);

 private:
  const RunConfig& config_;
  const bool has_local_state_;
  std::unique_ptr<CheckpointKeeper> keeper_;
};

}  // namespace syncopate::experiments
