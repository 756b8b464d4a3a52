// CheckpointStore: the checkpoints of one run, in the folder "checkpoints" of its results.
//
//   step-000400/               complete: renamed to this once its manifest was written
//   step-000600.0.part/        being written in membership epoch 0 of the run; or left behind by a process that died
//
// Used by one thread.
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

  // Returns the steps of complete checkpoints, judged by their names, newest first.
  std::vector<std::int64_t> steps() const;
  std::string path_of(std::int64_t step) const { return folder_ + "/" + checkpoint_name(step); }

  // Writes `manifest` for an attempt whose parts are all written and makes it a complete checkpoint, in place of one of
  // the same step. Checkpoints of later steps are abandoned, since all processes have gone back before them. Fails with
  // resource exhausted; the previous contents are then still there. `key` authenticates the manifest; null: it is not
  // authenticated.
  Status complete(const Manifest& manifest, std::int64_t membership_epoch, const CheckpointKey* key = nullptr);
  // Call it once all processes know of the checkpoint of `step`, which was taken in `membership_epoch`. Removes
  // abandoned ones, all others except the newest `keep` and, if none of these is finite, the newest that is, and what
  // earlier attempts have left.
  void tidy(std::int64_t step, std::int64_t membership_epoch, int keep);
  // Returns the folder of the newest complete checkpoint whose values are all finite, as its manifest says.
  std::optional<std::string> newest_finite() const;
  // Removes an attempt that will not be completed.
  void give_up(std::int64_t step, std::int64_t membership_epoch);
  // Removes all attempts, also those that were given up while somebody still wrote. Call it once nobody writes any
  // more.
  void remove_attempts();

 private:
  std::string folder_;
  std::set<std::int64_t> abandoned_;  // steps of complete checkpoints that are abandoned
};

// Returns the name of the folder in which the parts of an attempt are written, below the run's folder of checkpoints.
// Each writer creates it if it does not exist.
std::string attempt_name(std::int64_t step, std::int64_t membership_epoch);

// A checkpoint that was verified, and the ones that were skipped before it was found: a line each, for a person.
struct FoundCheckpoint {
  Checkpoint checkpoint;
  std::vector<std::string> passed_over;
};

// Finds the newest intact checkpoint in `folder`, which is a run's results, its folder of checkpoints, or one
// checkpoint. `check` sees each manifest before the rest is read; its failure is returned. If `key` is not null, an
// intact checkpoint that it does not authenticate is also a failure, since an older one would not be what the user has
// asked for. One that says that its values are not all finite is skipped, too. Fails with not found if there is none,
// and with data loss, naming all that were skipped, if none is left.
Result<FoundCheckpoint> newest_checkpoint(const std::string& folder, const StateForms& forms,
                                          const std::function<Status(const Manifest&)>& check,
                                          const CheckpointKey* key = nullptr);

}  // namespace syncopate::experiments
