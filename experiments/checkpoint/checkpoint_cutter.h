// CheckpointCutter: takes a worker's parts of checkpoints. Training calls it after each step, which costs next to
// nothing unless a checkpoint is due. Then the state is copied while training stands still, and another thread writes
// it while training goes on.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "common/clock.h"
#include "experiments/checkpoint/background_writer.h"
#include "experiments/checkpoint/checkpoint_policy.h"
#include "experiments/checkpoint/part_writer.h"

namespace syncopate::experiments {

struct CutterOptions {
  std::string folder;  // folder of the run's checkpoints
  std::string writer;
  int worker = 0;  // the rank
  CheckpointInterval interval;
  bool together = true;  // whether workers move together, as in CheckpointPolicy
  // The one of the last step is not left out because the one before is still being written: nothing is trained
  // meanwhile that waiting would hold up. It waits for so long.
  std::int64_t last_step = 0;
  Duration patience{};
  Digests digests = Digests::kNo;
};

class CheckpointCutter {
 public:
  // `forms` and `threads` outlive this. `report` may be called from any thread, until this is destroyed.
  CheckpointCutter(CutterOptions options, const StateForms& forms, Threads& threads, ReportCheckpoint report);

  // From now on steps are those of this membership epoch; `first_step` is the next one. `share` says what this worker
  // writes, if anything.
  void begin(std::int64_t membership_epoch, std::int64_t first_step, std::optional<Share> share);
  // Any thread: take a checkpoint at `step`, or, if workers do not move together, after the next step; besides those of
  // the interval.
  void on_order(std::int64_t membership_epoch, std::int64_t step);
  // This many steps are done. If a checkpoint is due, `take` fills the state, whose step is already set. Its failure is
  // reported and does not affect training.
  void step_done(std::int64_t steps_done, const std::function<Status(TrainingState&)>& take);
  // Waits until nothing is being written.
  void finish() { writer_.finish(); }

 private:
  // Returns the step by which a checkpoint that is due now is counted.
  std::optional<std::int64_t> due(std::int64_t steps_done);
  void cut(CheckpointReport report, std::int64_t steps_done, const std::function<Status(TrainingState&)>& take);

  const CutterOptions options_;
  const StateForms& forms_;
  const Clock& clock_;
  const ReportCheckpoint report_;

  std::mutex mutex_;  // guards what follows
  std::int64_t membership_epoch_ = 0;
  std::int64_t steps_done_ = 0;
  std::optional<Share> share_;
  std::optional<std::int64_t> ordered_;

  BackgroundWriter writer_;  // last: its thread uses the above
};

}  // namespace syncopate::experiments
