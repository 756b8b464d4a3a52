#include "ps/server/chunk_weights.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <utility>

#include "common/float_loops.h"
#include "common/os/flush_denormals.h"
#include "common/os/target_clones.h"
#include "common/param_layout.h"
#include "ps/server/shard_state.h"

namespace syncopate::ps {
namespace {

// Floats that are summed and applied at a time: the block, its sum and the optimizer's memory stay in the first-level
// cache, and no buffer of the chunk's size is needed for the sum.
constexpr std::size_t kBlock = 4096;
// The constants of adaptive delay compensation.
constexpr float kKeptSquare = 0.95f;
constexpr float kLeastSquare = 1e-7f;

SYNCOPATE_CLONES void add_two(const float* __restrict first, const float* __restrict second, float* __restrict sum,
                              std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] = first[i] + second[i];
}

SYNCOPATE_CLONES void add_scaled(float factor, const float* __restrict values, float* __restrict sum,
                                 std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] += factor * values[i];
}

SYNCOPATE_CLONES void move(const float* __restrict there, float rate, float* __restrict weights, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) weights[i] += rate * (there[i] - weights[i]);
}

SYNCOPATE_CLONES void keep_squares(const float* __restrict values, float* __restrict mean, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    mean[i] = kKeptSquare * mean[i] + (1 - kKeptSquare) * (values[i] * values[i]);
  }
}

// What compensation reads, element by element.
struct Delayed {
  const float* __restrict values;
  const float* __restrict then;
  const float* __restrict now;
};

SYNCOPATE_CLONES void compensate(Delayed delayed, float lambda, float* __restrict better, std::size_t count) {
  const auto [values, then, now] = delayed;
  for (std::size_t i = 0; i < count; ++i) {
    better[i] = values[i] + lambda * values[i] * values[i] * (now[i] - then[i]);
  }
}

SYNCOPATE_CLONES void compensate_adaptively(Delayed delayed, const float* __restrict mean_square, float most,
                                            float* __restrict better, std::size_t count) {
  const auto [values, then, now] = delayed;
  for (std::size_t i = 0; i < count; ++i) {
    const float lambda = most / std::sqrt(mean_square[i] + kLeastSquare);
    better[i] = values[i] + lambda * values[i] * values[i] * (now[i] - then[i]);
  }
}

using Gradients = std::span<const std::span<const float>>;

// The sum of the gradients of one host within `block`: in `sum`, unless there is but one.
std::span<const float> sum_of_host(Gradients gradients, Range block, std::span<float> sum) {
  if (gradients.size() == 1) return slice(gradients[0], block);
  sum = sum.first(block.size());
  const std::span<const float> first = slice(gradients[0], block);
  const std::span<const float> second = slice(gradients[1], block);
  add_two(first.data(), second.data(), sum.data(), sum.size());
  for (const std::span<const float> gradient : gradients.subspan(2)) {
    add(slice(gradient, block).data(), sum.data(), sum.size());
  }
  return sum;
}

// Room for the sums of one block, within the nearest caches.
struct SumRoom {
  std::span<float> of_all, of_host;
};

// The sum within `block`, host by host: in `room`, unless there is but one gradient.
std::span<const float> sum_of(const GradientSum& gradients, Range block, const SumRoom& room) {
  std::span<const float> total;
  for (std::size_t begin = 0, end = 0; begin < gradients.hosts.size(); begin = end) {
    while (end < gradients.hosts.size() && gradients.hosts[end] == gradients.hosts[begin]) ++end;
    const Gradients of_host = Gradients(gradients.gradients).subspan(begin, end - begin);
    if (begin == 0) {
      total = sum_of_host(of_host, block, room.of_all);
      continue;
    }
    const std::span<const float> further = sum_of_host(of_host, block, room.of_host);
    if (total.data() == room.of_all.data()) {
      add(further.data(), room.of_all.data(), total.size());
    } else {
      add_two(total.data(), further.data(), room.of_all.data(), total.size());
      total = room.of_all.first(total.size());
    }
  }
  return total;
}

}  // namespace

void GradientSum::clear() {
  gradients.clear();
  hosts.clear();
  workers = 0;
}

void GradientSum::add(std::span<const float> gradient, int host, int workers_in_push) {
  assert(hosts.empty() || hosts.back() <= host);
  gradients.push_back(gradient);
  hosts.push_back(host);
  workers += workers_in_push;
}

ChunkWeights::ChunkWeights(int workers, OptimizerConfig optimizer, DelayCompensation compensation, WeightsPool& pool,
                           const UpdateFunction* function)
    : optimizer_(optimizer),
      function_(function),
      compensation_(compensation),
      pool_(pool),
      state_(optimizer, 0),
      reads_current_(static_cast<std::size_t>(workers), false),
      kept_(compensation.enabled() ? static_cast<std::size_t>(workers) : 0) {}

void ChunkWeights::place(Range range, std::span<const Range> undecayed) {
  place_ = range;
  optimizer_ = Optimizer(optimizer_.config(), undecayed, range);
}

Status ChunkWeights::take_memory(std::size_t size) {
  assert(!created());
  SYNCOPATE_ASSIGN_OR_RETURN(current_, pool_.acquire(size));
  size_ = size;
  state_ = OptimizerState(optimizer_.config(), size_);
  if (function_ != nullptr || is_layerwise(optimizer_.config().kind)) whole_ = AlignedBuffer(2 * size_);
  if (compensation_.enabled() && compensation_.adaptive) mean_square_ = AlignedBuffer(size_);
  return Status();
}

Status ChunkWeights::create(std::span<const float> initial) {
  SYNCOPATE_RETURN_IF_ERROR(take_memory(initial.size()));
  std::copy(initial.begin(), initial.end(), current_->memory.begin());
  return Status();
}

Status ChunkWeights::restore(Range range, const TrainingState& state, std::int64_t version, float summed_weight) {
  SYNCOPATE_RETURN_IF_ERROR(take_memory(range.size()));
  version_ = version;
  SYNCOPATE_RETURN_IF_ERROR(state.read(state_part::kWeights, range, current_->memory.first(size_)));
  SYNCOPATE_RETURN_IF_ERROR(state_.restore({0, size_}, range.begin, state));
  // A job that has not kept it until now begins with none.
  if (mean_square_.size() > 0 && state.covers(shard_part::kMeanSquare, range)) {
    SYNCOPATE_RETURN_IF_ERROR(state.read(shard_part::kMeanSquare, range, mean_square_.span()));
  }
  if (summed_weight == 0) return Status();
  sum_ = AlignedBuffer(size_);
  return read_sum(range, summed_weight, sum_.span(), state);
}

void ChunkWeights::save(std::size_t begin, TrainingState& state) const {
  state.put(state_part::kWeights, begin, current());
  state_.save({0, size_}, begin, state);
  if (mean_square_.size() > 0) state.put(shard_part::kMeanSquare, begin, mean_square_.span());
  if (sum_.size() > 0) state.put(shard_part::kSum, begin, sum_.span());
}

Status ChunkWeights::update(const GradientSum& gradients, double learning_rate) {
  const FlushDenormals flush;
  const UpdateStep step = next_step(learning_rate, 1.0f / static_cast<float>(gradients.workers));
  alignas(64) std::array<float, 2 * kBlock> near;
  const std::span<float> both = whole_.size() > 0 ? whole_.span() : near;
  const SumRoom room{both.first(block()), both.subspan(block())};
  return update_blocks([&](Range block, std::span<float> weights) {
    apply(weights, sum_of(gradients, block, room), block.begin, step);
  });
}

Status ChunkWeights::update(const StaleGradient& gradient, double learning_rate, float scale) {
  const UpdateStep step = next_step(learning_rate, scale);
  const std::span<const float> pulled = take_pulled(gradient);
  alignas(64) std::array<float, kBlock> near;
  const std::span<float> room = whole_.size() > 0 ? whole_.span() : near;
  const Status status = update_blocks([&](Range block, std::span<float> weights) {
    const std::span<const float> values = compensated(gradient, block, pulled, weights, room);
    apply(weights, values, block.begin, step);
  });
  release(gradient.worker);
  return status;
}

void ChunkWeights::accumulate(const StaleGradient& gradient, float weight) {
  if (sum_.size() == 0) sum_ = AlignedBuffer(size_);
  const std::span<const float> pulled = take_pulled(gradient);
  alignas(64) std::array<float, kBlock> room;
  for (std::size_t begin = 0; begin < size_; begin += kBlock) {
    const Range block{begin, std::min(begin + kBlock, size_)};
    const std::span<const float> values = compensated(gradient, block, pulled, slice(current(), block), room);
    add_scaled(weight, values.data(), slice(sum_.span(), block).data(), block.size());
  }
  release(gradient.worker);
}

Status ChunkWeights::update_from_sum(float divisor, double learning_rate) {
  const UpdateStep step = next_step(learning_rate, 1 / divisor);
  return update_blocks([&](Range block, std::span<float> weights) {
    const std::span<float> sum = slice(sum_.span(), block);
    apply(weights, sum, block.begin, step);
    std::fill(sum.begin(), sum.end(), 0.0f);
  });
}

Status ChunkWeights::move_towards(std::span<const float> values, float rate) {
  return update_blocks([&](Range block, std::span<float> weights) {
    move(slice(values, block).data(), rate, weights.data(), weights.size());
  });
}

void ChunkWeights::apply(std::span<float> weights, std::span<const float> gradient, std::size_t begin,
                         const UpdateStep& step) {
  if (function_ == nullptr) return optimizer_.apply(weights, gradient, state_, begin, step);
  (*function_)(place_, weights, gradient, step.gradient_scale, step.learning_rate);
}

// A rule that goes by layer needs a whole one, and so does a function.
std::size_t ChunkWeights::block() const { return whole_.size() > 0 ? size_ : kBlock; }

PendingSends* ChunkWeights::lend(int worker) {
  reads_current_[static_cast<std::size_t>(worker)] = true;
  if (!kept_.empty()) {
    release(worker);
    kept_[static_cast<std::size_t>(worker)] = {current_, version_};
    ++current_->keepers;
  }
  return &current_->pending;
}

void ChunkWeights::release(int worker) {
  if (kept_.empty()) return;
  WeightsPool::Buffer*& buffer = kept_[static_cast<std::size_t>(worker)].buffer;
  if (buffer != nullptr) --buffer->keepers;
  buffer = nullptr;
}

Status ChunkWeights::make_writable() {
  if (current_->keepers == 0) {
    if (current_->pending.none()) return Status();
    if (std::ranges::find(reads_current_, true) == reads_current_.end()) return pool_.settle(current_->pending);
  }
  SYNCOPATE_ASSIGN_OR_RETURN(WeightsPool::Buffer* const buffer, pool_.acquire(size_));
  pool_.give_up(current_);
  current_ = buffer;
  std::fill(reads_current_.begin(), reads_current_.end(), false);
  ++copies_;
  return Status();
}

template <typename Change>
Status ChunkWeights::update_blocks(Change&& change) {
  const std::span<const float> from = current();
  SYNCOPATE_RETURN_IF_ERROR(make_writable());
  const std::span<float> to = current_->memory.first(size_);
  const std::size_t largest = block();
  for (std::size_t begin = 0; begin < size_; begin += largest) {
    const Range block{begin, std::min(begin + largest, size_)};
    const std::span<float> weights = slice(to, block);
    if (to.data() != from.data()) {
      const std::span<const float> old = slice(from, block);
      std::copy(old.begin(), old.end(), weights.begin());
    }
    change(block, weights);
  }
  ++version_;
  return Status();
}

UpdateStep ChunkWeights::next_step(double learning_rate, float gradient_scale) const {
  return {.learning_rate = learning_rate, .gradient_scale = gradient_scale, .number = version_ + 1};
}

std::span<const float> ChunkWeights::take_pulled(const StaleGradient& gradient) {
  if (!kept_.empty() && gradient.version < version_) {
    const Kept& kept = kept_[static_cast<std::size_t>(gradient.worker)];
    if (kept.buffer != nullptr && kept.version == gradient.version) return kept.buffer->memory.first(size_);
  }
  release(gradient.worker);
  return {};
}

std::span<const float> ChunkWeights::compensated(const StaleGradient& gradient, Range block,
                                                 std::span<const float> pulled, std::span<const float> now,
                                                 std::span<float> room) {
  const std::span<const float> values = slice(gradient.values, block);
  if (pulled.empty() && mean_square_.size() == 0) return values;
  const FlushDenormals flush;
  float* const mean_square = mean_square_.size() > 0 ? slice(mean_square_.span(), block).data() : nullptr;
  if (mean_square != nullptr) keep_squares(values.data(), mean_square, block.size());
  if (pulled.empty()) return values;
  const Delayed delayed{values.data(), slice(pulled, block).data(), now.data()};
  const std::span<float> better = room.first(block.size());
  if (compensation_.adaptive) {
    compensate_adaptively(delayed, mean_square, compensation_.lambda, better.data(), better.size());
  } else {
    compensate(delayed, compensation_.lambda, better.data(), better.size());
  }
  return better;
}

}  // namespace syncopate::ps
