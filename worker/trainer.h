// Trainer: the training loop of one worker, the same for every mode.
#pragma once

#include <cstdint>
#include <functional>

#include "common/activity.h"
#include "common/clock.h"
#include "common/optimizer/learning_rate.h"
#include "common/status.h"
#include "common/step_record.h"
#include "common/sync_strategy.h"
#include "worker/batch_source.h"
#include "worker/model.h"
#include "worker/straggling.h"
#include "worker/work.h"

namespace syncopate::worker {

struct TrainerOptions {
  bool chief = false;            // initialises the weights, unless they are restored
  std::uint64_t seed = 1;        // of the initial weights
  std::int64_t total_steps = 0;  // global batches of the job: what each worker trains where all train equally much
  std::int64_t steps_per_epoch = 1;
  LearningRateSchedule schedule;
  double base_learning_rate = 0;
  double minibatch_growth = 1;              // see LearningRateContext
  int workers = 1;                          // of the job
  const TrainingState* restored = nullptr;  // what to go on from; null: a new job, or others have it
};

// What of a worker is to be evaluated after a step.
struct EvaluationShare {
  bool state = false;    // its model's local state
  bool weights = false;  // those that the job has come to
};

// What the loop asks and tells between steps; a null function is not called, and a failure ends the training.
struct TrainerHooks {
  // After join, before the first step: the step that training begins with.
  std::function<void(std::int64_t first_step)> joined;
  // Before the first step of epoch `epoch` here (the first included, be it begun in its midst): false ends the
  // training, on every worker after the same epoch. Epochs are the job's: a slow worker may pass over some.
  std::function<Result<bool>(std::int64_t epoch)> next_epoch;
  // After each step; `steps_done` counts it.
  std::function<Status(std::int64_t steps_done)> step_done;
  // After each step before the job's last, behind step_done: what is to be evaluated now. Then the next two are called
  // for it. `steps_done` here and below: steps of the job, by this worker's position in it.
  std::function<EvaluationShare(std::int64_t steps_done)> evaluation_due;
  // Of a model that has any, its local state as it is now, in the host's memory. After the last step, too, where
  // `final`.
  std::function<void(bool final, std::span<const float> state)> local_state;
  // The weights that the job has come to (SyncStrategy::job_weights), in the host's memory. It may read rows of the
  // strategy's tables.
  std::function<Status(std::int64_t steps_done, std::span<const float> weights)> snapshot;
  // After the last step, before this worker leaves the others.
  std::function<Status()> leaving;
};

struct TrainerParts {
  ComputeBackend& backend;  // the model's
  Model& model;
  BatchSource& batches;
  SyncStrategy& strategy;
  RecordSink& records;
  const Clock& clock;
  Activity& activity;
  Straggling* straggling = nullptr;  // of a worker that is to be slow
  Work* work = nullptr;              // null: this worker's own part of each of the total_steps
};

// Allocates, joins, runs steps from the strategy's first on until there is no more work, leaves, all on the calling
// thread, on which denormals are flushed meanwhile. `final_weights`, unless null, is called with the weights (in the
// host's memory) after leave(). The first failure ends it; leave() is then not called.
Status train(const TrainerOptions& options, const TrainerHooks& hooks, const TrainerParts& parts,
             const std::function<Status(std::span<const float>)>& final_weights);

}  // namespace syncopate::worker
