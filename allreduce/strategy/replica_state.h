// ReplicaState: the state that all replicas of a job have in common: the dense weights, their optimizer state, and the
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
  // The tables must outlive it.
  ReplicaState(const OptimizerConfig& optimizer, ReplicatedTables& tables) : optimizer_(optimizer), tables_(tables) {}

  // `weights` is the arena, which must outlive it.
  void allocate(const ParamLayout& layout, std::span<float> weights);

  // Call it before the update of a dense part if that update takes momentum (Optimizer::takes_momentum_in): turns this
  // worker's gradients into its own momentum. Updates of other parts may run meanwhile.
  void to_momentum(Range range, std::span<float> gradients) const;
  bool takes_momentum_in(std::int64_t update) const { return optimizer_.takes_momentum_in(update); }
  // Updates a dense part, which must be of whole tensors. The last update before those of momentum freezes the variance
  // (frozen_variance.h).
  void apply(Range range, std::span<const float> gradients, const UpdateStep& update);

  void save(TrainingState& state) const;
  // Fails with data loss if something is missing, or cannot be of this layout.
  Status restore(const TrainingState& state);
  // Sends the giver's state to the ranks that take it.
  Status transfer(StateTransfer& transfer);

  // Returns a hash of all weights and rows.
  std::uint64_t content() const;

 private:
  std::span<float> dense() const { return slice(weights_, layout_.dense()); }

  Optimizer optimizer_;
  ReplicatedTables& tables_;
  ParamLayout layout_;
  std::span<float> weights_;
  std::optional<OptimizerState> remembered_;  // optimizer state of the dense part; from allocate on
};

}  // namespace syncopate::allreduce
