// Work: which batch of the job a worker trains next, and when none is left for it.
//
// A job is one sequence of batches, each for one worker: batch n is part n % W of global batch n / W. A worker's
// position in the job is the number of batches that were assigned before its current one, over all workers. Learning
// rates, epochs and evaluations depend on that position, so that they mean the same however much each worker trains.
#pragma once

#include <cstdint>
#include <optional>

#include "common/status.h"
#include "common/sync_strategy.h"
#include "worker/batch_source.h"

namespace syncopate::worker {

class Work {
 public:
  virtual ~Work() = default;

  // Training begins or goes on here with step `first_step` of this worker.
  virtual Status begin(std::int64_t first_step) = 0;
  // Call it before step `step` of this worker. Returns its position in the job, or none if nothing is left to train.
  // The batch is the one that the batch source returns next. It may wait.
  virtual Result<std::optional<std::int64_t>> next(std::int64_t step) = 0;
};

// Each worker has a quota of its own: its part of `total_steps` global batches, whatever the others do.
class Quota final : public Work {
 public:
  // `batches` must be this worker's, and outlive this object.
  Quota(BatchSource& batches, int workers, std::int64_t total_steps)
      : batches_(batches), workers_(workers), total_steps_(total_steps) {}

  Status begin(std::int64_t first_step) override;
  Result<std::optional<std::int64_t>> next(std::int64_t step) override;

 private:
  BatchSource& batches_;
  const std::int64_t workers_;
  const std::int64_t total_steps_;
};

// Updates take the first `needed` of all workers' gradients, and drop the others (Chen et al. 2016, "Revisiting
// distributed synchronous SGD", algorithms 3 and 4). Training ends for all once the updates have used as many batches
// as the job has, however few of them a slow worker has contributed.
class UntilUpdated final : public Work {
 public:
  // Both must outlive this object; the strategy must provide updates().
  UntilUpdated(BatchSource& batches, SyncStrategy& strategy, int needed, std::int64_t job_batches);

  // The number of updates after which training ends: batches / needed, rounded up.
  static std::int64_t updates_of(std::int64_t job_batches, int needed) { return (job_batches + needed - 1) / needed; }

  Status begin(std::int64_t first_step) override;
  Result<std::optional<std::int64_t>> next(std::int64_t step) override;

 private:
  BatchSource& batches_;
  SyncStrategy& strategy_;
  const std::int64_t needed_;
  const std::int64_t job_batches_;
};

}  // namespace syncopate::worker
