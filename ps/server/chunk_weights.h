// ChunkWeights: the weights of one chunk, the optimizer's memory of them, and the update.
//
// An update is made in place when nobody reads or keeps the current buffer, and otherwise out of place, into another
// buffer of the pool: copy on write. With one worker, and whenever all workers have pushed since they were last
// answered (sync), it is always in place. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/optimizer/optimizer.h"
#include "common/os/aligned_buffer.h"
#include "common/param_layout.h"
#include "common/status.h"
#include "common/training_state.h"
#include "ps/policy/staleness.h"
#include "ps/server/weights_pool.h"

namespace syncopate::ps {

class ChunkWeights {
 public:
  // `pool` outlives this object. With delay compensation, what was lent to a worker is kept until release(worker): at
  // most one buffer for each.
  ChunkWeights(int workers, OptimizerConfig optimizer, DelayCompensation compensation, WeightsPool& pool);

  // Ranges of these weights that weight decay leaves out. Before create or restore.
  void leave_undecayed(std::vector<Range> ranges);

  // Copies the initial weights. Once, before all that follows. Fails as WeightsPool::acquire does.
  Status create(std::span<const float> initial);
  // Or, instead, the weights and all that is kept beside them, of `range` of the arena, from what save() or a
  // checkpoint has told, with so many updates and `summed_weight` of accumulate() in them. Fails with data loss, too.
  Status restore(Range range, const TrainingState& state, std::int64_t version, float summed_weight);
  bool created() const { return current_ != nullptr; }
  // Adds to `state` what restore() needs, for the range that begins at `begin`.
  void save(std::size_t begin, TrainingState& state) const;

  // All of the following values are as long as the weights. What makes an update fails as WeightsPool::acquire and
  // settle do.

  // One update from the mean of `gradients` (at least one), summed in their order.
  Status update(std::span<const std::span<const float>> gradients, float learning_rate);

  // A gradient that may be stale: it is compensated, if that is asked for and `worker` was last lent `version`; what
  // was lent is then released.
  struct StaleGradient {
    std::span<const float> values;
    int worker = 0;
    std::int64_t version = 0;  // that it was computed from
  };
  // One update from one gradient, times `scale`.
  Status update(const StaleGradient& gradient, float learning_rate, float scale = 1);
  // Adds `weight` times a gradient to a sum (one more chunk of memory); the next makes an update of it, divided by
  // `divisor`, and clears it.
  void accumulate(const StaleGradient& gradient, float weight);
  Status update_from_sum(float divisor, float learning_rate);

  // One update w += rate · (values - w).
  Status move_towards(std::span<const float> values, float rate);

  // Of the updates that follow.
  void set_momentum(float momentum) { optimizer_.set_momentum(momentum); }

  std::span<const float> current() const { return current_->memory.first(size_); }
  std::size_t size() const { return size_; }
  // Updates so far.
  std::int64_t version() const { return version_; }
  // Updates that were not in place.
  std::int64_t copies() const { return copies_; }

  // The counter of the sends that will read the current weights: `worker` reads them until returned(worker).
  PendingSends* lend(int worker);
  // `worker` has shown, by a message that it could not send before, that it has read what was lent to it last: only the
  // news of that may be under way, which an update may then wait for. Not to be called for a lost worker: its transport
  // alone knows when the bytes are let go.
  void returned(int worker) { reads_current_[static_cast<std::size_t>(worker)] = false; }
  // No gradient of what was lent to `worker` will come any more.
  void release(int worker);

 private:
  struct Kept {
    WeightsPool::Buffer* buffer = nullptr;
    std::int64_t version = 0;
  };

  // Takes memory for so many weights, and for what is kept beside them.
  Status take_memory(std::size_t size);
  // Makes a buffer current that nobody reads or keeps. What was current before keeps its contents until the next call.
  Status make_writable();
  // One update: `change` is called with each block and its weights as they were.
  template <typename Change>
  Status update_blocks(Change&& change);
  UpdateStep next_step(float learning_rate, float gradient_scale) const;

  // What the gradient was computed from, if it is to be compensated for what has changed since; otherwise nothing, and
  // what was lent is released, so that it may be overwritten.
  std::span<const float> take_pulled(const StaleGradient& gradient);
  // The gradient within `block`, compensated for the way from `pulled` (empty: none) to `now`: in `room`, or as it was.
  std::span<const float> compensated(const StaleGradient& gradient, Range block, std::span<const float> pulled,
                                     std::span<const float> now, std::span<float> room);

  Optimizer optimizer_;
  DelayCompensation compensation_;
  WeightsPool& pool_;
  OptimizerState state_;
  AlignedBuffer sum_;          // from the first accumulate() on
  AlignedBuffer mean_square_;  // of gradients; adaptive compensation only
  WeightsPool::Buffer* current_ = nullptr;
  std::size_t size_ = 0;
  std::vector<bool> reads_current_;  // by worker
  std::vector<Kept> kept_;           // by worker; empty without compensation
  std::int64_t version_ = 0;
  std::int64_t copies_ = 0;
};

}  // namespace syncopate::ps
