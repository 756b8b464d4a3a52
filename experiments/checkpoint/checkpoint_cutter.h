// CheckpointCutter: takes a worker's parts of checkpoints. Training calls it after each step, which costs next to
// nothing unless a checkpoint is due; then the state is copied while training stands still, and written by another
// thread while it goes on.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "common/clock.h"
#include "experiments/checkpoint/background_writer.h"
#include "experiments/checkpoint/checkpoint_course.h"
#include "experiments/checkpoint/part_delivery.h"

namespace syncopate::experiments {

struct CutterOptions {
  std::string folder;  // of the run's checkpoints
  std::string writer;
  int worker = 0;  // the rank
  CheckpointInterval interval;
  bool together = true;  // as CheckpointCourse has it
  Digests digests = Digests::kNo;
};

class CheckpointCutter {
 public:
  // `forms` and `clock` outlive this; `report` may be called from any thread, until this ends.
  CheckpointCutter(CutterOptions options, const StateForms& forms, const Clock& clock, ReportCheckpoint report);

  // From now on steps are those of this generation, `first_step` the next; `share`: what is written of them, if
  // anything.
  void begin(std::int64_t generation, std::int64_t first_step, std::optional<Share> share);
  // Any thread: cut at `step`, or, where workers do not move together, after the next.
  void on_order(std::int64_t generation, std::int64_t step);
  // So many steps are done. Where a checkpoint is due, `take` fills the state, whose step is set; its failure is
  // reported, and no matter of training's.
  void step_done(std::int64_t steps_done, const std::function<Status(TrainingState&)>& take);
  // Until what is being written is written.
  void finish() { writer_.finish(); }

 private:
  // The step by which a checkpoint that is due now goes.
  std::optional<std::int64_t> due(std::int64_t steps_done);
  void cut(CheckpointReport report, std::int64_t steps_done, const std::function<Status(TrainingState&)>& take);

  const CutterOptions options_;
  const StateForms& forms_;
  const Clock& clock_;
  const ReportCheckpoint report_;

  std::mutex mutex_;  // of what follows
  std::int64_t generation_ = 0;
  std::int64_t steps_done_ = 0;
  std::optional<Share> share_;
  std::optional<std::int64_t> ordered_;

  BackgroundWriter writer_;  // last: its thread uses the above
};

}  // namespace syncopate::experiments
