// ReplicaState: what all replicas of a job hold alike: the dense weights, what the optimizer remembers of them, and the
// rows of tables. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "allreduce/collective/state_transfer.h"
#include "allreduce/strategy/replicated_tables.h"
#include "common/optimizer/optimizer.h"
#include "common/param_layout.h"
#include "common/training_state.h"

namespace syncopate::allreduce {

class ReplicaState {
 public:
  // The tables outlive it.
  ReplicaState(const OptimizerConfig& optimizer, ReplicatedTables& tables) : optimizer_(optimizer), tables_(tables) {}

  // `weights` is the arena, which outlives it.
  void allocate(const ParamLayout& layout, std::span<float> weights);

  // Before the update of a part of what is no table, where it is one of momentum (Optimizer::takes_momentum_in): this
  // worker's gradients become its own momentum. Updates of other parts may go on meanwhile.
  void to_momentum(Range range, std::span<float> gradients) const;
  bool takes_momentum_in(std::int64_t update) const { return optimizer_.takes_momentum_in(update); }
  // The update of a part of what is no table, of whole tensors. The last before those of momentum leaves the variance
  // as it stays (frozen_variance.h).
  void apply(Range range, std::span<const float> gradients, const UpdateStep& update);

  void save(TrainingState& state) const;
  // Data loss where something is missing, or cannot be of this layout.
  Status restore(const TrainingState& state);
  // The giver's, to ranks that take it.
  Status transfer(StateTransfer& transfer);

  // A hash of all weights and rows.
  std::uint64_t content() const;

 private:
  std::span<float> dense() const { return slice(weights_, layout_.dense()); }

  Optimizer optimizer_;
  ReplicatedTables& tables_;
  ParamLayout layout_;
  std::span<float> weights_;
  std::optional<OptimizerState> remembered_;  // of what is no table; from allocate on
};

}  // namespace syncopate::allreduce
