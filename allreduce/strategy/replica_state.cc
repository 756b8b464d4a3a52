#include "allreduce/strategy/replica_state.h"

#include <bit>

namespace syncopate::allreduce {
namespace {

// FNV-1a with words of four bytes in place of bytes: many megabytes are hashed while others wait.
class ContentHash {
 public:
  void add(std::span<const float> values) {
    for (const float value : values) add(std::bit_cast<std::uint32_t>(value));
  }
  void add(std::uint32_t word) {
    value_ = (value_ ^ word) * 0x100000001B3ull;
    value_ ^= value_ >> 32;  // what has gone up comes down again
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325ull;
};

}  // namespace

void raise_small_variances(std::span<float> variance) {
  if (variance.empty()) return;
  double sum = 0;
  for (const float value : variance) sum += static_cast<double>(value);
  const double mean = sum / static_cast<double>(variance.size());
  const float least = kLeastVariance * static_cast<float>(mean);
  for (float& value : variance) value = value < least ? least : value;
}

void ReplicaState::allocate(const ParamLayout& layout, std::span<float> weights) {
  layout_ = layout;
  weights_ = weights;
  optimizer_ = Optimizer(optimizer_.config(), layout, layout.dense());
  remembered_.emplace(optimizer_.config(), layout.dense().size());
  tables_.allocate(layout);
}

void ReplicaState::to_momentum(Range range, std::span<float> gradients) const {
  optimizer_.own_momentum(slice(weights_, range), gradients, *remembered_, range.begin - layout_.dense().begin);
}

void ReplicaState::apply(Range range, std::span<const float> gradients, const UpdateStep& update) {
  optimizer_.apply(slice(weights_, range), gradients, *remembered_, range.begin - layout_.dense().begin, update);
  if (!optimizer_.takes_momentum_in(update.number + 1) || optimizer_.takes_momentum_in(update.number)) return;
  const std::span<float> variances = remembered_->memories()[1];
  for (const TensorSpec& tensor : layout_.tensors()) {
    const Range part = tensor.range;
    if (part.begin < range.begin || part.end > range.end) continue;
    raise_small_variances(slice(variances, in_memories(part)));
  }
}

void ReplicaState::save(TrainingState& state) const {
  for (const Range& own : layout_.dense_places()) {
    state.put(state_part::kWeights, own.begin, slice(weights_, own));
    remembered_->save(in_memories(own), layout_.dense().begin, state);
  }
  tables_.save(state);
}

Status ReplicaState::restore(const TrainingState& state) {
  for (const Range& own : layout_.dense_places()) {
    SYNCOPATE_RETURN_IF_ERROR(state.read(state_part::kWeights, own, slice(weights_, own)));
    SYNCOPATE_RETURN_IF_ERROR(
        remembered_->restore(in_memories(own), layout_.dense().begin, state).in("what the optimizer remembers"));
  }
  return tables_.restore(state);
}

Status ReplicaState::transfer(StateTransfer& transfer) {
  for (const Range& own : layout_.dense_places()) {
    SYNCOPATE_RETURN_IF_ERROR(transfer.give(slice(weights_, own)).in("weights"));
    for (const std::span<float> memory : remembered_->memories()) {
      const std::span<float> part = memory.empty() ? memory : slice(memory, in_memories(own));
      SYNCOPATE_RETURN_IF_ERROR(transfer.give(part).in("what the optimizer remembers"));
    }
  }
  return tables_.transfer(transfer);
}

std::uint64_t ReplicaState::content() const {
  ContentHash hash;
  for (const Range& own : layout_.dense_places()) hash.add(slice(weights_, own));
  TrainingState tables;
  tables_.save(tables);
  for (const auto& [table, rows] : tables.rows) {
    for (const RowKey key : rows.keys) hash.add(key);
    hash.add(rows.values);
  }
  return hash.value();
}

}  // namespace syncopate::allreduce
