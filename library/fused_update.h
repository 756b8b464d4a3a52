// FusedUpdate: Syncopate's update rules for tensors that lie anywhere, in one pass over each. It holds what the
// optimizer remembers. Tensors may have rules of their own, and take part in some updates alone. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/optimizer/optimizer.h"
#include "library/strategy_exchange.h"

namespace syncopate::library {

class FusedUpdate {
 public:
  // `groups`: by tensor, the number of its rule, from 0; `sizes`: its elements.
  FusedUpdate(const std::vector<std::size_t>& groups, const std::vector<std::size_t>& sizes);
  FusedUpdate(const FusedUpdate&) = delete;
  FusedUpdate& operator=(const FusedUpdate&) = delete;

  // Before the first update, and whenever it changes. What the optimizer remembers stays, also beside a rule that
  // remembers less.
  void set_rule(std::size_t group, const OptimizerConfig& rule);
  // Updates the tensor's weights, of whose size the gradient is.
  void apply(std::size_t tensor, std::span<float> weights, std::span<const float> gradient, double learning_rate);

  std::size_t size_of(std::size_t tensor) const { return sizes_[tensor]; }
  // By tensor: the updates that it has had.
  const std::vector<std::int64_t>& updates() const { return updates_; }
  // Goes on from `memories`, which as many updates have made. Requires that the rules have been set.
  void restore(const std::vector<std::int64_t>& updates, const TensorMemories& memories);
  void save(const TensorMemories& memories);

 private:
  const std::vector<std::size_t> groups_;
  const std::vector<std::size_t> sizes_;
  std::vector<std::optional<Optimizer>> rules_;  // by group
  std::vector<OptimizerState> states_;           // by tensor
  std::vector<std::int64_t> updates_;            // by tensor
};

}  // namespace syncopate::library
