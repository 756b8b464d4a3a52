// ShardWeights: the weights that a shard holds, the optimizer's memory of them, and the update. One thread.
#pragma once

#include <cstdint>
#include <span>

#include "common/aligned_buffer.h"
#include "common/optimizer.h"
#include "common/param_layout.h"
#include "common/status.h"
#include "ps/weights_buffers.h"

namespace syncopate::ps {

class ShardWeights {
 public:
  ShardWeights(int workers, OptimizerConfig optimizer, WeightsBuffers::Allocate allocate,
               WeightsBuffers::Settle settle);

  // Copies the initial weights. Once, before all that follows.
  Status create(std::span<const float> initial);
  bool created() const { return buffers_.count() > 0; }

  // One update from the mean of `gradients` (at least one; each as long as the weights), summed in their order.
  // Fails as WeightsBuffers::begin_update does.
  Status update(std::span<const std::span<const float>> gradients, float learning_rate);

  std::span<const float> current() const { return buffers_.current(); }
  // Updates so far.
  std::int64_t version() const { return version_; }
  WeightsBuffers& buffers() { return buffers_; }
  const WeightsBuffers& buffers() const { return buffers_; }

 private:
  std::span<const float> sum_of(std::span<const std::span<const float>> gradients, Range block);

  Optimizer optimizer_;
  OptimizerState state_;
  WeightsBuffers buffers_;
  AlignedBuffer sum_;  // of one block of gradients
  std::int64_t version_ = 0;
};

}  // namespace syncopate::ps
