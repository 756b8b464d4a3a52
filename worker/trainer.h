// Trainer: the training loop of one worker, the same for every mode.
#pragma once

#include <cstdint>
#include <functional>

#include "common/activity.h"
#include "common/clock.h"
#include "common/device/device.h"
#include "common/optimizer/learning_rate.h"
#include "common/status.h"
#include "common/step_record.h"
#include "common/sync_strategy.h"
#include "common/trace/tracer.h"
#include "worker/batch_source.h"
#include "worker/health_check.h"
#include "worker/model.h"
#include "worker/straggling.h"
#include "worker/work.h"

namespace syncopate::worker {

struct TrainerOptions {
  bool chief = false;            // initialises the weights, unless they are restored, and has the final ones
  std::uint64_t seed = 1;        // for the initial weights
  std::int64_t total_steps = 0;  // global batches of the job; each worker trains all of them if all train equally much
  std::int64_t steps_per_epoch = 1;
  LearningRateSchedule schedule;
  double base_learning_rate = 0;
  double minibatch_growth = 1;               // see LearningRateContext
  int workers = 1;                           // in the job
  int microbatches = 1;                      // parts of a batch that pass through the model one after the other;
                                             // above 1: the strategy adds up their gradients, and no device computes
  const TrainingState* restored = nullptr;   // the state to go on from; null: a new job, or others have it
  std::optional<HealthOptions> health = {};  // none: nothing is looked at
};

// What a worker provides for an evaluation after a step.
struct EvaluationShare {
  bool state = false;    // its model's local state
  bool weights = false;  // the weights that the job has reached
};

// Callbacks of the loop between steps. A null function is not called; a failure ends the training.
struct TrainerHooks {
  // Called after join, before the first step, with the step that training begins with.
  std::function<void(std::int64_t first_step)> joined;
  // Called before the first step of epoch `epoch` on this worker (also if training begins in the middle of an epoch).
  // False ends the training, on every worker after the same epoch. Epochs are the job's: a slow worker may skip some.
  std::function<Result<bool>(std::int64_t epoch)> next_epoch;
  // Called after each step; `steps_done` includes it. On a device the last of them may still be under way: `settle`
  // waits until they are done and recorded. Its failure ends the training, too.
  std::function<Status(std::int64_t steps_done, const std::function<Status()>& settle)> step_done;
  // Called after each step but the job's last, after step_done: returns what is to be evaluated now, for which the next
  // two are then called. Here and below `steps_done` counts steps of the job, by this worker's position in it.
  std::function<EvaluationShare(std::int64_t steps_done)> evaluation_due;
  // Receives a model's current local state, if it has any, in the host's memory. Also called after the last step, with
  // `final`.
  std::function<void(bool final, std::span<const float> state)> local_state;
  // Receives the weights that the job has reached (SyncStrategy::job_weights), in the host's memory. It may read rows
  // of the strategy's tables.
  std::function<Status(std::int64_t steps_done, std::span<const float> weights)> snapshot;
  // Called in a step in which something is not a finite number, before the others see it, unless the step's loss on a
  // device was the first sign, which is seen once the next step is under way.
  std::function<Status(const NotFinite& what)> not_finite;
  // Returns whether the next gradient is to hold a NaN, which a person has asked for. Called once a step.
  std::function<bool()> plants_nan;
  // Returns the rate of the step that begins, in place of the schedule's.
  std::function<double()> learning_rate;
  // Called after the last step, before this worker leaves the others.
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
  Straggling* straggling = nullptr;  // for a worker that is to be slow
  // Returns how long this thread has been ready without a core to run on; null: that is not known. Unused on a device.
  std::function<Duration()> core_wait = nullptr;
  Work* work = nullptr;      // null: this worker's own part of each of the total_steps
  Tracer* tracer = nullptr;  // records phases, if set
  Device* device = nullptr;  // the backend's, if steps are to be launched as graphs (step_graphs.h)
};

// Allocates, joins, runs steps from the strategy's first on until there is no more work, and leaves, all on the calling
// thread, on which denormals are flushed meanwhile. `final_weights`, unless null, is called with the weights (in the
// host's memory) after leave(). The first failure ends it; leave() is then not called.
Status train(const TrainerOptions& options, const TrainerHooks& hooks, const TrainerParts& parts,
             const std::function<Status(std::span<const float>)>& final_weights);

}  // namespace syncopate::worker
