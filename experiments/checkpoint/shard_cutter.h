// ShardCutter: takes one shard's parts of checkpoints. It asks the shard for its state at the right moment; the shard
// copies the state while it serves, and the cutter writes it on a thread of its own. A shard that holds nothing, as
// where there are more shards than tensors, takes no part.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "experiments/checkpoint/background_writer.h"
#include "experiments/checkpoint/checkpoint_policy.h"
#include "experiments/checkpoint/part_writer.h"

namespace syncopate::experiments {

struct ShardCutterOptions {
  std::string folder;  // folder of the run's checkpoints
  std::string writer;  // "shard-3"
  CheckpointInterval interval;
  bool together = true;     // whether workers move together, as in CheckpointPolicy: updates then count steps
  std::int64_t period = 1;  // a worker's steps from one update to the next
  // As of a worker's (CutterOptions): the one of the last step waits for so long until the one before is written.
  std::int64_t last_step = 0;
  Duration patience{};
  Digests digests = Digests::kNo;
};

class ShardCutter {
 public:
  using StateDone = std::function<void(Result<TrainingState>)>;
  // Asks for the state at the time when `version` updates have been made, or, if updates are not made together, for the
  // current one. `done` is called once, later, on any thread. See ps::ShardServer::save_when.
  using SaveWhen = std::function<void(std::int64_t version, TrainingState memory, StateDone done)>;

  // `forms` and `threads` outlive this. `report` may be called from any thread, until this is destroyed.
  ShardCutter(ShardCutterOptions options, const StateForms& forms, ReportCheckpoint report,
              Threads& threads = os_threads());

  // From now on the shard is served in this membership epoch, and goes on after `first_step` steps. `save_when` is
  // called until end().
  void begin(std::int64_t membership_epoch, std::int64_t first_step, SaveWhen save_when);
  // Any thread: take part in the checkpoint of this step, besides those of the interval.
  void on_order(std::int64_t membership_epoch, std::int64_t step);
  // Call it before what save_when refers to is destroyed, and once it has called back for all requests.
  void end();
  // Waits until nothing is being written.
  void finish() { writer_.finish(); }

 private:
  std::int64_t next_after(std::int64_t step) const;
  // `then_next`: whether to ask for the next one of the count behind it.
  void ask(std::int64_t membership_epoch, std::int64_t step, bool then_next);
  void on_state(CheckpointReport report, Result<TrainingState> state);
  // Returns whether checkpoints are due by the count of updates, without orders.
  bool counts() const { return options_.interval.steps > 0 && options_.together; }

  const ShardCutterOptions options_;
  const StateForms& forms_;
  const ReportCheckpoint report_;
  const Clock& clock_;

  std::mutex mutex_;  // guards what follows
  std::int64_t membership_epoch_ = 0;
  SaveWhen save_when_;

  BackgroundWriter writer_;  // last: its thread uses the above
};

}  // namespace syncopate::experiments
