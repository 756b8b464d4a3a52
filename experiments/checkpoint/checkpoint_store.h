// CheckpointStore: the checkpoints of one run, in the folder "checkpoints" of its results.
//
//   step-000400/               complete: renamed to that once its manifest was there
//   step-000600.0.part/        being written, in generation 0 of the run; or left by somebody who died
//
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "experiments/checkpoint/checkpoint.h"

namespace syncopate::experiments {

class CheckpointStore {
 public:
  explicit CheckpointStore(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }

  // Steps of complete checkpoints, as far as names tell, newest first.
  std::vector<std::int64_t> steps() const;
  std::string path_of(std::int64_t step) const { return folder_ + "/" + checkpoint_name(step); }

  // Makes an attempt whose parts are all written, by `manifest`, a checkpoint, in the place of one of the same step.
  // Those of later steps are abandoned: all have gone back behind them. Fails with resource exhausted; what was there
  // before is then still there.
  // `key`: authenticates it; null: nothing does.
  Status complete(const Manifest& manifest, std::int64_t generation, const CheckpointKey* key = nullptr);
  // Once all know of the one of `step`, which was cut in `generation`: removes what is abandoned, of the others all but
  // the newest `keep`, and what earlier attempts have left.
  void tidy(std::int64_t step, std::int64_t generation, int keep);
  // An attempt that will not be completed.
  void give_up(std::int64_t step, std::int64_t generation);

 private:
  std::string folder_;
  std::set<std::int64_t> abandoned_;  // steps of complete ones
};

// Where the parts of an attempt are written, below the run's folder of checkpoints. Each writer makes it unless it is
// there.
std::string attempt_name(std::int64_t step, std::int64_t generation);

// A checkpoint that has been found whole, and what was passed over on the way to it: a line each, for a person.
struct FoundCheckpoint {
  Checkpoint checkpoint;
  std::vector<std::string> passed_over;
};

// The newest whole checkpoint in `folder`: a run's results, its folder of checkpoints, or one checkpoint. `check` sees
// each manifest before the rest is read: its failure is the answer. So is the failure of one that is whole and not
// authenticated by `key`, unless that is null: an older one would not be what the user has asked for. Not found where
// there is none; data loss, with all that was passed over, where none is whole.
Result<FoundCheckpoint> newest_checkpoint(const std::string& folder, const StateForms& forms,
                                          const std::function<Status(const Manifest&)>& check,
                                          const CheckpointKey* key = nullptr);

}  // namespace syncopate::experiments
