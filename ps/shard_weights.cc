#include "ps/shard_weights.h"

#include <algorithm>
#include <cassert>

namespace syncopate::ps {
namespace {

// Floats that are summed and applied at a time: the block, its sum and the optimizer's memory stay in the first-level
// cache, and no buffer of the shard's size is needed for the sum.
constexpr std::size_t kBlock = 4096;

}  // namespace

ShardWeights::ShardWeights(int workers, OptimizerConfig optimizer, WeightsBuffers::Allocate allocate,
                           WeightsBuffers::Settle settle)
    : optimizer_(optimizer),
      state_(optimizer.kind, 0),
      buffers_(workers, std::move(allocate), std::move(settle)),
      sum_(kBlock) {}

Status ShardWeights::create(std::span<const float> initial) {
  SYNCOPATE_RETURN_IF_ERROR(buffers_.create(initial.size()));
  Result<WeightsBuffers::Update> target = buffers_.begin_update();
  if (!target.ok()) return target.status();
  std::copy(initial.begin(), initial.end(), target->to.begin());
  state_ = OptimizerState(optimizer_.config().kind, initial.size());
  return Status();
}

Status ShardWeights::update(std::span<const std::span<const float>> gradients, float learning_rate) {
  Result<WeightsBuffers::Update> target = buffers_.begin_update();
  if (!target.ok()) return target.status();
  const UpdateStep step{.learning_rate = learning_rate,
                        .gradient_scale = 1.0f / static_cast<float>(gradients.size()),
                        .number = version_ + 1};
  for (std::size_t begin = 0; begin < target->to.size(); begin += kBlock) {
    const Range block{begin, std::min(begin + kBlock, target->to.size())};
    const std::span<float> weights = slice(target->to, block);
    if (!target->in_place()) {
      const std::span<const float> from = slice(target->from, block);
      std::copy(from.begin(), from.end(), weights.begin());
    }
    optimizer_.apply(weights, sum_of(gradients, block), state_, begin, step);
  }
  ++version_;
  return Status();
}

std::span<const float> ShardWeights::sum_of(std::span<const std::span<const float>> gradients, Range block) {
  if (gradients.size() == 1) return slice(gradients[0], block);
  const std::span<float> sum = sum_.span().first(block.size());
  const std::span<const float> first = slice(gradients[0], block);
  const std::span<const float> second = slice(gradients[1], block);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = first[i] + second[i];
  for (const std::span<const float> gradient : gradients.subspan(2)) {
    const std::span<const float> next = slice(gradient, block);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += next[i];
  }
  return sum;
}

}  // namespace syncopate::ps
