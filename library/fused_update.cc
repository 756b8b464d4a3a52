#include "library/fused_update.h"

#include <algorithm>

namespace syncopate::library {

FusedUpdate::FusedUpdate(const std::vector<std::size_t>& groups, const std::vector<std::size_t>& sizes)
    : groups_(groups),
      sizes_(sizes),
      rules_(groups.empty() ? 0 : 1 + *std::ranges::max_element(groups)),
      updates_(sizes.size()) {
  for (const std::size_t size : sizes) states_.emplace_back(OptimizerConfig(), size);
}

void FusedUpdate::set_rule(std::size_t group, const OptimizerConfig& rule) {
  rules_[group].emplace(rule);
  const std::size_t needed = state_floats(rule) * sizeof(float);
  for (std::size_t tensor = 0; tensor < states_.size(); ++tensor) {
    const bool is_there = states_[tensor].bytes() >= needed * sizes_[tensor];
    if (groups_[tensor] != group || is_there) continue;
    OptimizerState larger(rule, sizes_[tensor]);
    for (std::size_t memory = 0; memory < kMostMemories; ++memory) {
      const std::span<float> before = states_[tensor].memories()[memory], after = larger.memories()[memory];
      if (before.size() == after.size()) std::ranges::copy(before, after.begin());
    }
    states_[tensor] = std::move(larger);
  }
}

void FusedUpdate::apply(std::size_t tensor, std::span<float> weights, std::span<const float> gradient,
                        double learning_rate) {
  rules_[groups_[tensor]]->apply(weights, gradient, states_[tensor], 0,
                                 {.learning_rate = learning_rate, .number = ++updates_[tensor]});
}

void FusedUpdate::restore(const std::vector<std::int64_t>& updates, const TensorMemories& memories) {
  updates_ = updates;
  for (std::size_t memory = 0; memory < memories.size(); ++memory) {
    for (std::size_t tensor = 0; tensor < states_.size(); ++tensor) {
      const std::span<float> own = states_[tensor].memories()[memory];
      if (!own.empty()) std::ranges::copy(memories[memory][tensor], own.begin());
    }
  }
}

void FusedUpdate::save(const TensorMemories& memories) {
  for (std::size_t memory = 0; memory < memories.size(); ++memory) {
    for (std::size_t tensor = 0; tensor < states_.size(); ++tensor) {
      const std::span<float> own = states_[tensor].memories()[memory];
      if (own.empty()) {
        std::ranges::fill(memories[memory][tensor], 0.0f);
      } else {
        std::ranges::copy(own, memories[memory][tensor].begin());
      }
    }
  }
}

}  // namespace syncopate::library
