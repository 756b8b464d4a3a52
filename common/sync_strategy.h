// SyncStrategy: a worker's interface to a mode. It takes gradients and provides the next weights: only this interface
// is wide enough for an optimizer that runs on a server.
//
//   allocate(layout) -> arenas           once; the strategy owns them: it alone knows what its wire reads in place
//   resumable()->restore(state)          if training goes on rather than begins
//   join()                               all replicas prove the same layout and return with the same weights
//   repeat:
//     begin_step(step)
//     gradient_ready(bucket) ...         inside backward, in one fixed order; does not block, but where gradients must
//                                        not pile up
//     weights_needed_again(range) ...    inside backward, where weights were given back after forward
//     gradients_complete()               never blocks; a strategy for a device enqueues the rest of the step
//     step_given()                       never blocks
//     finish_step() -> SyncStats         returns when the weights are those of the next forward pass, or
//     weights_needed(range) ...          when a strategy lets them arrive during that pass
//   leave()                              drains, and agrees to stop
//
// Each step names the rows of a table (param_layout.h) that it touches: row keys[i] is the i-th in the table's range of
// the arena. Their weights are valid once weights_needed has returned for that range. The gradients of these rows are
// pushed with the table's bucket; a row that is not touched does not change, whatever the update rule.
//
// A strategy that runs_ahead() only enqueues all of this on a device. Then finish_step waits for the oldest step that
// is not finished, and as many as kStepsUnderWay may be begun before the oldest is finished. What gradient_ready and
// gradients_complete enqueue may be captured (device.h): these calls are then left out in later steps of the same turn.
//
// All calls are made on the worker's compute thread. After any call has failed, only Resumable::save and the
// destructor may follow.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/param_layout.h"
#include "common/status.h"
#include "common/tensor_span.h"
#include "common/training_state.h"

namespace syncopate {

// The two arenas, of layout.size() numbers each, zeroed, aligned to a cache line; valid as long as the strategy. They
// lie where the model computes: a strategy for a device provides the device's memory.
struct ParamArenas {
  std::span<float> weights;    // those that the update rule reads and writes
  std::span<float> gradients;  // none if the model computes with 16-bit numbers, which are
  // these: the weights above, rounded by join and by every update, and their gradients (Micikevicius et al. 2018,
  // "Mixed precision training", section 3.1).
  TensorSpan rounded_weights = {};
  TensorSpan rounded_gradients = {};
  // The factor of the loss, of which the gradients are then (section 3.2): one number, which changes between steps.
  // None: 1.
  std::span<const float> loss_scale = {};

  TensorSpan model_weights() const { return rounded_weights.empty() ? TensorSpan(weights) : rounded_weights; }
  TensorSpan model_gradients() const { return rounded_gradients.empty() ? TensorSpan(gradients) : rounded_gradients; }
};

// How many steps of a worker may be under way at once on a device. They take turns at what each needs a copy of.
inline constexpr int kStepsUnderWay = 2;
inline std::size_t turn_of(std::int64_t step) { return static_cast<std::size_t>(step % kStepsUnderWay); }

struct StepContext {
  std::int64_t step = 0;     // 0 for the first
  double learning_rate = 0;  // of this step
  // By table, the rows that this step touches: at most rows_a_step. They must not change until finish_step.
  std::span<const RowKeys> rows = {};
  std::int64_t epoch = 0;      // of the step; 0 for the first
  std::int64_t update = step;  // of the step; it is another one where the first steps make none
};

// What a step's synchronisation costs.
struct SyncStats {
  Duration exposed_wait{};     // time that the compute thread waited
  Duration forward_wait{};     // the part of it within forward
  Duration backward_wait{};    // the part of it within backward
  Duration pass_core_wait{};   // the part of both in which its thread was ready and had no core; the trainer takes it
  Duration communication{};    // time during which this worker's communication was in flight, hidden or exposed
  Duration optimizer{};        // time that the compute thread spent in the update rule; zero if a server applies it
  Duration codec{};            // time that this worker's threads spent compressing and decompressing
  Duration backward_codec{};   // the part of it that the compute thread spent within backward
  Duration copy{};             // time of copies between a device and the host; zero on the CPU
  std::int64_t bytes_out = 0;  // payload
  std::int64_t bytes_in = 0;
  // Over the responses since the last step's figures (to this step's pushes, unless they may arrive later): server
  // updates between the pull that the gradient was computed from and the push. Under asynchronous gossip: averages that
  // changed the replica between the copy that the gradient was computed from and its update; how many updates of others
  // these contained is not known. Zero in synchronous modes.
  double staleness_mean = 0;
  std::int64_t staleness_max = 0;
  // The share of these pushes that arrived too late for their update, and were dropped: 0 to 1.
  double dropped = 0;
  std::int64_t loss_scale = 0;  // the loss was multiplied by it (loss_scale.h); 0: it was not scaled
  std::int64_t skipped = 0;     // 1: some gradient was not finite then, so no replica made an update
  // Under parameter servers: the shard whose responses the step waited for last, and for how long it was the only one;
  // -1 and zero if the step waited for none.
  int last_shard = -1;
  Duration last_shard_alone{};
};

// The weights that a job has reached, for evaluation.
struct JobWeights {
  bool are_there = true;               // false: not available after this step
  std::span<const float> values = {};  // in the host's memory; empty: those of the replica's own arena
};

// What a strategy can do whose replica can go on from a saved state.
class Resumable {
 public:
  virtual ~Resumable() = default;

  // Call it between allocate and join: this replica goes on from `state`, which its save() or a checkpoint has made.
  // Fails with data loss if something is missing, and with invalid argument if this replica cannot go on from it.
  virtual Status restore(const TrainingState& state) = 0;

  // Adds to `state` what only this replica has and needs to go on after its last finished step: everything if replicas
  // hold the state themselves, less if servers do. Call it between steps, once weights_needed has returned for all
  // weights; or after a failure, if the strategy can undo the failed step; otherwise it fails with invalid argument.
  virtual Status save(TrainingState& state) const = 0;
};

// What a strategy can do that trains row-sparse tables. On the chief, between steps and after leave.
class TableReader {
 public:
  virtual ~TableReader() = default;

  // Reads the current rows `keys` of table `table` into `values` (keys, width).
  virtual Status read_rows(std::size_t table, RowKeys keys, std::span<float> values) = 0;
  // Returns the rows that any replica has ever touched.
  virtual Result<std::vector<RowKey>> touched_rows(std::size_t table) = 0;
};

class SyncStrategy {
 public:
  virtual ~SyncStrategy() = default;

  // What only some strategies can do: null if this one cannot. What is returned is part of the strategy.
  virtual Resumable* resumable() { return nullptr; }
  virtual TableReader* table_reader() { return nullptr; }

  virtual Result<ParamArenas> allocate(const ParamLayout& layout) = 0;

  // Before join, the chief has put the initial weights into its arena; after it, every replica holds them. Returns the
  // buckets that gradient_ready counts: ranges in backward order that cover the arena. A bucket may split tensors,
  // except that each table is exactly one bucket.
  virtual Result<std::vector<Range>> join() = 0;

  // After join: the step with which this replica goes on, 0 in a new job.
  virtual std::int64_t first_step() const { return 0; }

  virtual void begin_step(const StepContext& step) = 0;

  // The gradients of bucket `bucket` are final. Call it once per bucket and pass, in ascending order. Failures are kept
  // and reported by finish_step.
  virtual void gradient_ready(std::size_t bucket) = 0;

  // All gradients of the step have been handed over. Failures are kept and reported by finish_step.
  virtual void gradients_complete() {}

  // All work of the step was given to the device.
  virtual void step_given() {}

  virtual Result<SyncStats> finish_step() = 0;

  // Whether the weights are updated on a device, in the order of its work, so that the next step can be enqueued before
  // this one is done.
  virtual bool runs_ahead() const { return false; }

  // Returns when `range` of the arena holds the weights of this step's forward pass. Call it before they are read: in
  // forward for each layer's range, and before weights are read between steps.
  virtual Status weights_needed(Range /*range*/) { return Status(); }

  // The same for backward, which reads the ranges of forward again. What is asked for in a pass is there until the next
  // call: a replica that has a part of the weights for itself gathers the others' for as long.
  virtual Status weights_needed_again(Range /*range*/) { return Status(); }

  // Between steps, on all replicas after the same one: a replica that has a part of the weights for itself provides it.
  // Until the next step all weights are then in the arena of those that have `wanted` them.
  virtual Status gather_weights(bool /*wanted*/) { return Status(); }

  // Between steps. Most replicas hold the job's weights themselves. If they make steps of their own, the job's weights
  // are those that they agree on, the mean or the center (which the papers report); they are available just after a
  // meeting.
  virtual JobWeights job_weights() const { return {}; }

  // For strategies in which a step of this replica need not make an update, since others may make it alone: the updates
  // that every part of its weights has had in the whole job. Empty if each step is one update.
  virtual std::optional<std::int64_t> updates() const { return std::nullopt; }

  // After it, the weights are the job's final ones: the same on every replica that has them all.
  virtual Status leave() = 0;

  // From now on `ready` is called inside finish_step, weights_needed and leave for each range of the arena as soon as
  // it holds its new weights, so that they can be copied elsewhere while others are still in flight.
  void on_weights(std::function<void(Range)> ready) { weights_ready_ = std::move(ready); }

 protected:
  // Fails with invalid argument if the layout has row-sparse tables; for strategies that do not support them.
  static Status refuse_tables(const ParamLayout& layout) {
    return layout.tables().empty() ? Status() : Status::invalid_argument("this strategy has no row-sparse tables");
  }

  void report_weights(Range range) const {
    if (weights_ready_) weights_ready_(range);
  }

 private:
  std::function<void(Range)> weights_ready_;
};

}  // namespace syncopate
