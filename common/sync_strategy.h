// SyncStrategy: all that the worker knows of a mode. The cut is "gradients in, next weights out": only that is wide
// enough for an optimizer that lives on a server.
//
//   allocate(layout) -> arenas           once; the strategy owns them: it alone knows what its wire reads in place
//   restore(state)                       where training goes on rather than begins
//   join()                               every replica proves the same layout and leaves with the same weights
//   repeat:
//     begin_step(step)
//     gradient_ready(bucket) ...       inside backward, in the one fixed order; never blocks
//     finish_step() -> SyncStats       returns when the weights are those of the next forward pass, or
//     weights_needed(range) ...        when a strategy lets them come while that pass already runs
//   leave()                            drains, and agrees to stop
//
// Of a table (param_layout.h) a step sees the rows that it says it touches: row keys[i] is the i-th in the table's
// room. Their weights are there once weights_needed has returned for that room; the gradients of that many rows are
// pushed with the table's bucket, and a row that is not touched is not changed, whatever the update rule.
//
// All calls come from the worker's compute thread. After any call has failed, only save() and the destructor may
// follow.
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
#include "common/training_state.h"

namespace syncopate {

// The two arenas, layout.size() floats each, zeroed, aligned to a cache line; valid as long as the strategy. They lie
// where the model computes: a strategy for a device gives out the device's memory.
struct ParamArenas {
  std::span<float> weights;
  std::span<float> gradients;
};

struct StepContext {
  std::int64_t step = 0;     // 0 for the first
  double learning_rate = 0;  // of this step
  // By table, what this step touches: at most rows_a_step. They stay as they are until finish_step.
  std::span<const RowKeys> rows = {};
  std::int64_t epoch = 0;  // that the step is of; 0 for the first
};

// What a step's synchronisation cost.
struct SyncStats {
  Duration exposed_wait{};     // time that the compute thread stood waiting
  Duration forward_wait{};     // the part of it that lay within forward
  Duration communication{};    // time during which this worker's communication was under way, hidden or exposed
  Duration optimizer{};        // time that the compute thread spent in the update rule; zero where a server applies it
  Duration codec{};            // time that this worker's threads spent compressing and decompressing
  Duration copy{};             // time that copies between a device and the host were under way; zero on the CPU
  std::int64_t bytes_out = 0;  // payload
  std::int64_t bytes_in = 0;
  // Over the answers that came since the last step's figures (to this step's pushes, unless they may come later):
  // server updates between the pull that the gradient was computed from and the push. Under asynchronous gossip:
  // averages that changed the replica between the copy that the gradient was computed from and its update; how many
  // updates of others these brought in is not known. Zero in synchronous modes.
  double staleness_mean = 0;
  std::int64_t staleness_max = 0;
  // The part of these pushes that came too late for its update, and was dropped: 0 to 1.
  double dropped = 0;
};

// What a job has come to, for whoever evaluates it.
struct JobWeights {
  bool are_there = true;               // false: not after this step
  std::span<const float> values = {};  // in the host's memory; empty: they are those of the replica's own arena
};

class SyncStrategy {
 public:
  virtual ~SyncStrategy() = default;

  virtual Result<ParamArenas> allocate(const ParamLayout& layout) = 0;

  // Between allocate and join: this replica goes on from `state`, which its save() or a checkpoint has made. Fails with
  // data loss where something is missing, with invalid argument where a strategy cannot go on.
  virtual Status restore(const TrainingState& state);

  // Before join, the chief has put the initial weights into its arena; after it, every replica holds them. Returns the
  // buckets by which gradient_ready counts: ranges in backward order that cover the arena; they may split tensors, but
  // for tables, each of which is one.
  virtual Result<std::vector<Range>> join() = 0;

  // After join: the step that this replica goes on with, 0 in a new job.
  virtual std::int64_t first_step() const { return 0; }

  virtual void begin_step(const StepContext& step) = 0;

  // The gradients of bucket `bucket` are final. Called once a bucket and step, in ascending order. Failures are kept
  // and reported by finish_step.
  virtual void gradient_ready(std::size_t bucket) = 0;

  virtual Result<SyncStats> finish_step() = 0;

  // Returns when `range` of the arena holds the weights of this step's forward pass. To be called before they are read:
  // in forward, by each layer for its own, and by whoever reads the weights between steps.
  virtual Status weights_needed(Range /*range*/) { return Status(); }

  // Between steps. Most replicas hold the job's weights themselves. Where they make steps of their own, what they agree
  // on is the job's, the mean or the center (it is what the papers report), and stands when they have just met.
  virtual JobWeights job_weights() const { return {}; }

  // Where a step of this replica need not make an update (others may have made it without it): updates that every part
  // of its weights has had in the whole job. None where each step is one update.
  virtual std::optional<std::int64_t> updates() const { return std::nullopt; }

  // After it, the weights are the job's final ones: the same on every replica.
  virtual Status leave() = 0;

  // The rows `keys` of table `table` as they are now, into `values` (keys, width). On the chief, between steps and
  // after leave. Fails with invalid argument where a strategy has no tables.
  virtual Status read_rows(std::size_t table, RowKeys keys, std::span<float> values);
  // The rows that any replica has ever touched. At the same times.
  virtual Result<std::vector<RowKey>> touched_rows(std::size_t table);

  // Adds to `state` what this replica alone must remember to go on after the last step that it has finished: all there
  // is where replicas hold everything themselves, less where servers do. Between steps, once weights_needed has
  // returned for all weights; and after a failure, if the strategy can undo the step that failed, else it fails with
  // invalid argument.
  virtual Status save(TrainingState& state) const;

  // From now on `ready` is called inside finish_step, weights_needed and leave for each range of the arena as soon as
  // it holds its new weights, so that they can be taken elsewhere while others are still on their way.
  void on_weights(std::function<void(Range)> ready) { weights_ready_ = std::move(ready); }

 protected:
  // Invalid argument if the layout has row-sparse tables: for strategies that have none.
  static Status refuse_tables(const ParamLayout& layout);

  void report_weights(Range range) const {
    if (weights_ready_) weights_ready_(range);
  }

 private:
  std::function<void(Range)> weights_ready_;
};

}  // namespace syncopate
