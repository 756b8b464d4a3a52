#include "ps/chunk_weights.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "common/param_layout.h"

namespace syncopate::ps {
namespace {

// Floats that are summed and applied at a time: the block, its sum and the optimizer's memory stay in the first-level
// cache, and no buffer of the chunk's size is needed for the sum.
constexpr std::size_t kBlock = 4096;

// The sum of `gradients` within `block`: in `sum`, unless there is but one.
std::span<const float> sum_of(std::span<const std::span<const float>> gradients, Range block, std::span<float> sum) {
  if (gradients.size() == 1) return slice(gradients[0], block);
  sum = sum.first(block.size());
  const std::span<const float> first = slice(gradients[0], block);
  const std::span<const float> second = slice(gradients[1], block);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = first[i] + second[i];
  for (const std::span<const float> gradient : gradients.subspan(2)) {
    const std::span<const float> next = slice(gradient, block);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += next[i];
  }
  return sum;
}

}  // namespace

ChunkWeights::ChunkWeights(int workers, OptimizerConfig optimizer, WeightsPool& pool)
    : optimizer_(optimizer),
      pool_(pool),
      state_(optimizer.kind, 0),
      reads_current_(static_cast<std::size_t>(workers), false) {}

Status ChunkWeights::create(std::span<const float> initial) {
  assert(!created());
  Result<WeightsPool::Buffer*> buffer = pool_.acquire(initial.size());
  if (!buffer.ok()) return buffer.status();
  current_ = *buffer;
  size_ = initial.size();
  std::copy(initial.begin(), initial.end(), current_->memory.begin());
  state_ = OptimizerState(optimizer_.config().kind, size_);
  return Status();
}

Status ChunkWeights::update(std::span<const std::span<const float>> gradients, float learning_rate) {
  const std::span<const float> from = current();
  SYNCOPATE_RETURN_IF_ERROR(make_writable());
  const std::span<float> to = current_->memory.first(size_);
  const UpdateStep step{.learning_rate = learning_rate,
                        .gradient_scale = 1.0f / static_cast<float>(gradients.size()),
                        .number = version_ + 1};
  alignas(64) std::array<float, kBlock> sum;
  for (std::size_t begin = 0; begin < size_; begin += kBlock) {
    const Range block{begin, std::min(begin + kBlock, size_)};
    const std::span<float> weights = slice(to, block);
    if (to.data() != from.data()) {
      const std::span<const float> old = slice(from, block);
      std::copy(old.begin(), old.end(), weights.begin());
    }
    optimizer_.apply(weights, sum_of(gradients, block, sum), state_, begin, step);
  }
  ++version_;
  return Status();
}

PendingSends* ChunkWeights::lend(int worker) {
  reads_current_[static_cast<std::size_t>(worker)] = true;
  return &current_->pending;
}

Status ChunkWeights::make_writable() {
  if (current_->pending.none()) return Status();
  if (std::ranges::find(reads_current_, true) == reads_current_.end()) return pool_.settle(current_->pending);
  Result<WeightsPool::Buffer*> buffer = pool_.acquire(size_);
  if (!buffer.ok()) return buffer.status();
  pool_.give_up(current_);
  current_ = *buffer;
  std::fill(reads_current_.begin(), reads_current_.end(), false);
  ++copies_;
  return Status();
}

}  // namespace syncopate::ps
