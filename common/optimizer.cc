#include "common/optimizer.h"

#include <cassert>

#include "common/flush_denormals.h"
#include "common/update_rule.h"

// This file is compiled without contraction to fused multiply-add (see cmake/Options.cmake): a vector body and its
// scalar tail then round alike, so that the result of an element does not depend on how a range was cut.

namespace syncopate {
namespace {

using update_rule::AdamConstants;
using update_rule::is_adam;
using update_rule::MomentumConstants;

// The constants are copies, so that a loop need not fear that a store changes them.

void apply_sgd(float* __restrict w, const float* __restrict g, std::size_t n, MomentumConstants c) {
  for (std::size_t i = 0; i < n; ++i) update_rule::sgd(w[i], g[i], c);
}

template <bool kNesterov>
void apply_momentum(float* __restrict w, const float* __restrict g, float* __restrict velocity, std::size_t n,
                    MomentumConstants c) {
  for (std::size_t i = 0; i < n; ++i) update_rule::momentum<kNesterov>(w[i], g[i], velocity[i], c);
}

void apply_adam(float* __restrict w, const float* __restrict g, float* __restrict m, float* __restrict v, std::size_t n,
                AdamConstants c) {
  for (std::size_t i = 0; i < n; ++i) update_rule::adam(w[i], g[i], m[i], v[i], c);
}

}  // namespace

OptimizerState::OptimizerState(OptimizerKind kind, std::size_t elements)
    : first_(kind == OptimizerKind::kSgd ? 0 : elements), second_(is_adam(kind) ? elements : 0) {}

void Optimizer::apply(std::span<float> weights, std::span<const float> gradient, OptimizerState& state,
                      std::size_t offset, const UpdateStep& step) const {
  assert(gradient.size() == weights.size());
  assert(config_.kind == OptimizerKind::kSgd || offset + weights.size() <= state.first_.size());
  assert(!is_adam(config_.kind) || state.second_.size() == state.first_.size());
  const FlushDenormals flush;
  float* const w = weights.data();
  const float* const g = gradient.data();
  const std::size_t n = weights.size();
  const MomentumConstants constants = update_rule::momentum_constants(config_, step);
  switch (config_.kind) {
    case OptimizerKind::kSgd:
      return apply_sgd(w, g, n, constants);
    case OptimizerKind::kMomentum:
      if (config_.nesterov) return apply_momentum<true>(w, g, state.first_.data() + offset, n, constants);
      return apply_momentum<false>(w, g, state.first_.data() + offset, n, constants);
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return apply_adam(w, g, state.first_.data() + offset, state.second_.data() + offset, n,
                        update_rule::adam_constants(config_, step));
  }
}

}  // namespace syncopate
