// SplitLayout: a model's arena as a worker has it that has parts of layers, and as the whole model has it. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "common/param_layout.h"
#include "common/training_state.h"
#include "worker/chain_builder.h"
#include "worker/layers/tensor_share.h"

namespace syncopate::worker {

// Both layouts have the same tensors by the same names; a worker's, that of its shares, are smaller. Tensors that no
// share is of all workers have whole.
class SplitLayout {
 public:
  SplitLayout() = default;  // of a model without tensors
  // Reads it from a draft in which all layers have been built.
  explicit SplitLayout(const ModelDraft& draft);

  const ParamLayout& own() const { return own_; }
  const ParamLayout& whole() const { return whole_; }
  const TensorShare& share(std::size_t tensor) const { return shares_[tensor]; }

  // Copies elements of a tensor's share to an arena of the whole model: those of `range` of the own arena of the worker
  // with that part, which are `values`.
  void scatter(std::size_t tensor, int part, Range range, std::span<const float> values, std::span<float> whole) const;

  // Returns a state of the whole model, cut down to a worker's shares. Fails with data loss if something is missing.
  Result<TrainingState> own_state(const TrainingState& whole) const;
  // Adds a worker's state to one of the whole model, at the places that it has there: its shares, and if it is `first`
  // what all workers have. The state may lack tensors, which other workers have.
  Status add_to_whole(const TrainingState& own, bool first, TrainingState& whole) const;

 private:
  // Calls visit(first element in the whole arena, first element counted from range.begin, number of both).
  template <typename Visit>
  void for_each(std::size_t tensor, const TensorShare& share, Range range, const Visit& visit) const;

  ParamLayout own_, whole_;
  std::vector<TensorShare> shares_;  // by tensor
};

}  // namespace syncopate::worker
