// ChunkWeights: the weights of one chunk, the optimizer state for them, and the update.
//
// An update is made in place if nobody reads or keeps the current buffer, and otherwise out of place, into another
// buffer of the pool (copy on write). It is always in place with one worker, and whenever all workers have pushed since
// they were last answered (sync). One thread.
#pragma once

#include <cstdint>
#include <functional>
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

// The pushes of which one update is made: those of a host are summed in their order, then the sums of hosts in theirs.
struct GradientSum {
  std::vector<std::span<const float>> gradients;  // in the order of ranks, so that those of a host are neighbours
  std::vector<int> hosts;                         // by gradient
  int workers = 0;                                // whose gradients are in all of these

  void clear();
  // Adds a push from `host`, no lower than those before, which holds the gradients of so many workers.
  void add(std::span<const float> gradient, int host, int workers_in_push = 1);
};

// Makes the update of a chunk in place of the optimizer's rule, from the gradient times `scale`. `place`: where in the
// arena these weights lie.
using UpdateFunction = std::function<void(Range place, std::span<float> weights, std::span<const float> gradient,
                                          float scale, double learning_rate)>;

class ChunkWeights {
 public:
  // `pool` must outlive this object. With delay compensation, the weights that were on loan to a worker are kept until
  // release(worker): at most one buffer per worker.
  // If there is a function it makes all updates; it must outlive this object.
  ChunkWeights(int workers, OptimizerConfig optimizer, DelayCompensation compensation, WeightsPool& pool,
               const UpdateFunction* function = nullptr);

  // Says where in the arena these weights lie, and which ranges of them weight decay leaves out. Call it before create
  // or restore.
  void place(Range range, std::span<const Range> undecayed);

  // Copies the initial weights. Call it once, before all that follows. Fails as WeightsPool::acquire does.
  Status create(std::span<const float> initial);
  // Alternative to create: restores the weights of `range` of the arena and all that is kept beside them from a state
  // that save() or a checkpoint has made. `version` is the number of updates, and `summed_weight` is the total weight
  // of accumulate(). Also fails with data loss.
  Status restore(Range range, const TrainingState& state, std::int64_t version, float summed_weight);
  bool created() const { return current_ != nullptr; }
  // Adds to `state` what restore() needs, for the range that begins at `begin`.
  void save(std::size_t begin, TrainingState& state) const;

  // All values below are as long as the weights. The functions that make an update fail as WeightsPool::acquire and
  // settle do.

  // Makes one update from the mean over workers of the gradients (at least one). Numbers too small to be normal count
  // as zero in the sum, as they do where workers sum.
  Status update(const GradientSum& gradients, double learning_rate);

  // A gradient that may be stale. It is compensated if that is configured and `worker` was last given `version`; what
  // was on loan is then released.
  struct StaleGradient {
    std::span<const float> values;
    int worker = 0;
    std::int64_t version = 0;  // version that it was computed from
  };
  // Makes one update from one gradient, times `scale`.
  Status update(const StaleGradient& gradient, double learning_rate, float scale = 1);
  // accumulate() adds `weight` times a gradient to a sum (one more chunk of memory). update_from_sum() makes an update
  // of the sum, divided by `divisor`, and clears it.
  void accumulate(const StaleGradient& gradient, float weight);
  Status update_from_sum(float divisor, double learning_rate);

  // Counts an update that leaves the weights, and what is kept beside them, as they are.
  void leave_out_update() { ++version_; }

  // Makes one update w += rate · (values - w).
  Status move_towards(std::span<const float> values, float rate);

  // Sets the momentum of the updates that follow.
  void set_momentum(float momentum) { optimizer_.set_momentum(momentum); }

  std::span<const float> current() const { return current_->memory.first(size_); }
  std::size_t size() const { return size_; }
  // The number of updates so far.
  std::int64_t version() const { return version_; }
  // The number of updates that were not in place.
  std::int64_t copies() const { return copies_; }

  // Returns the counter of the sends that will read the current weights. `worker` reads them until returned(worker).
  PendingSends* lend(int worker);
  // `worker` has shown, by a message that it could not have sent before, that it has read what was last on loan to it:
  // only the report of that may still be under way, and an update may wait for it. Do not call this for a lost worker:
  // only its transport knows when the bytes are released.
  void returned(int worker) { reads_current_[static_cast<std::size_t>(worker)] = false; }
  // No gradient of the weights that were on loan to `worker` will arrive any more.
  void release(int worker);

 private:
  struct Kept {
    WeightsPool::Buffer* buffer = nullptr;
    std::int64_t version = 0;
  };

  // Allocates memory for `size` weights, and for what is kept beside them.
  Status take_memory(std::size_t size);
  // Makes a buffer current that nobody reads or keeps. The previous one keeps its contents until the next call.
  Status make_writable();
  // Makes one update: calls `change` with each block and its previous weights.
  template <typename Change>
  Status update_blocks(Change&& change);
  // The most that is updated at once.
  std::size_t block() const;
  void apply(std::span<float> weights, std::span<const float> gradient, std::size_t begin, const UpdateStep& step);
  UpdateStep next_step(double learning_rate, float gradient_scale) const;

  // Returns the weights that the gradient was computed from, if it is to be compensated. Otherwise returns nothing, and
  // releases what was on loan, so that it may be overwritten.
  std::span<const float> take_pulled(const StaleGradient& gradient);
  // Returns the gradient within `block`, compensated for the change from `pulled` (empty for none) to `now`: in `room`
  // if compensated, otherwise in place.
  std::span<const float> compensated(const StaleGradient& gradient, Range block, std::span<const float> pulled,
                                     std::span<const float> now, std::span<float> room);

  Optimizer optimizer_;
  const UpdateFunction* const function_;
  Range place_;
  DelayCompensation compensation_;
  WeightsPool& pool_;
  OptimizerState state_;
  AlignedBuffer sum_;          // allocated by the first accumulate()
  AlignedBuffer whole_;        // room for sums of a whole chunk, under rules that go by layer, and for a function
  AlignedBuffer mean_square_;  // of gradients; adaptive compensation only
  WeightsPool::Buffer* current_ = nullptr;
  std::size_t size_ = 0;
  std::vector<bool> reads_current_;  // by worker
  std::vector<Kept> kept_;           // by worker; empty without compensation
  std::int64_t version_ = 0;
  std::int64_t copies_ = 0;
};

}  // namespace syncopate::ps
