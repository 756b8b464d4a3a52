// ChunkWeights: the weights of one chunk, the optimizer's memory of them, and the update.
//
// An update is made in place when nobody reads the current buffer, and otherwise out of place, into another buffer of
// the pool: copy on write. With one worker, and whenever all workers have pushed since they were last answered (sync),
// it is always in place. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/optimizer.h"
#include "common/status.h"
#include "ps/weights_pool.h"

namespace syncopate::ps {

class ChunkWeights {
 public:
  // `pool` outlives this object.
  ChunkWeights(int workers, OptimizerConfig optimizer, WeightsPool& pool);

  // Copies the initial weights. Once, before all that follows. Fails as WeightsPool::acquire does.
  Status create(std::span<const float> initial);
  bool created() const { return current_ != nullptr; }

  // One update from the mean of `gradients` (at least one; each as long as the weights), summed in their order. Fails
  // as WeightsPool::acquire and settle do.
  Status update(std::span<const std::span<const float>> gradients, float learning_rate);

  std::span<const float> current() const { return current_->memory.first(size_); }
  std::size_t size() const { return size_; }
  // Updates so far.
  std::int64_t version() const { return version_; }
  // Updates that were not in place.
  std::int64_t copies() const { return copies_; }

  // The counter of the sends that will read the current weights: `worker` reads them until returned(worker).
  PendingSends* lend(int worker);
  // `worker` has shown, by its next message, that it has read what was lent to it. Not to be called for a lost worker:
  // its transport alone knows when the bytes are let go.
  void returned(int worker) { reads_current_[static_cast<std::size_t>(worker)] = false; }

 private:
  // Makes a buffer current that nobody reads. What was current before keeps its contents until the next call.
  Status make_writable();

  Optimizer optimizer_;
  WeightsPool& pool_;
  OptimizerState state_;
  WeightsPool::Buffer* current_ = nullptr;
  std::size_t size_ = 0;
  std::vector<bool> reads_current_;  // by worker
  std::int64_t version_ = 0;
  std::int64_t copies_ = 0;
};

}  // namespace syncopate::ps
