#include "common/optimizer/optimizer.h"

#include <cassert>

#include "common/optimizer/decay_parts.h"
#include "common/optimizer/update_rule.h"
#include "common/os/aligned_buffer.h"
#include "common/os/flush_denormals.h"
#include "common/os/prefetch.h"
#include "common/os/target_clones.h"

// This file is compiled without contraction to fused multiply-add (see cmake/Options.cmake): a vector body and its
// scalar tail then round alike, so that the result of an element does not depend on how a range was cut.

namespace syncopate {
namespace {

using update_rule::AdagradConstants;
using update_rule::AdamConstants;
using update_rule::FtrlConstants;
using update_rule::MomentumConstants;

// The constants are copies, so that a loop need not fear that a store changes them.

SYNCOPATE_CLONES void apply_sgd(float* __restrict w, const float* __restrict g, std::size_t n, MomentumConstants c) {
  for (std::size_t i = 0; i < n; ++i) update_rule::sgd(w[i], g[i], c);
}

template <bool kNesterov>
SYNCOPATE_CLONES void apply_momentum(float* __restrict w, const float* __restrict g, float* __restrict velocity,
                                     std::size_t n, MomentumConstants c) {
  for (std::size_t i = 0; i < n; ++i) update_rule::momentum<kNesterov>(w[i], g[i], velocity[i], c);
}

SYNCOPATE_CLONES void apply_adam(float* __restrict w, const float* __restrict g, float* __restrict m,
                                 float* __restrict v, std::size_t n, AdamConstants c) {
  for (std::size_t i = 0; i < n; ++i) update_rule::adam(w[i], g[i], m[i], v[i], c);
}

SYNCOPATE_CLONES void apply_adam_from_momentum(float* __restrict w, const float* __restrict sum, float* __restrict m,
                                               const float* __restrict v, std::size_t n, AdamConstants c) {
  for (std::size_t i = 0; i < n; ++i) update_rule::adam_from_momentum(w[i], sum[i], m[i], v[i], c);
}

SYNCOPATE_CLONES void make_own_momentum(const float* __restrict w, float* __restrict g, const float* __restrict m,
                                        const float* __restrict v, std::size_t n, AdamConstants c) {
  for (std::size_t i = 0; i < n; ++i) g[i] = update_rule::own_momentum(w[i], g[i], m[i], v[i], c);
}

SYNCOPATE_CLONES void apply_adagrad(float* __restrict w, const float* __restrict g, float* __restrict squares,
                                    std::size_t n, AdagradConstants c) {
  for (std::size_t i = 0; i < n; ++i) update_rule::adagrad(w[i], g[i], squares[i], c);
}

SYNCOPATE_CLONES void apply_ftrl(float* __restrict w, const float* __restrict g, float* __restrict z,
                                 float* __restrict squares, std::size_t n, FtrlConstants c) {
  for (std::size_t i = 0; i < n; ++i) update_rule::ftrl(w[i], g[i], z[i], squares[i], c);
}

// Calls work(update), where update(weights, gradient, first, second, count) is the rule with this step's constants.
template <typename Work>
void with_rule(const OptimizerConfig& config, const UpdateStep& step, const Work& work) {
  const MomentumConstants plain = update_rule::momentum_constants(config, step);
  switch (config.kind) {
    case OptimizerKind::kSgd:
      return work([=](float* w, const float* g, float*, float*, std::size_t n) { apply_sgd(w, g, n, plain); });
    case OptimizerKind::kMomentum:
      if (config.nesterov) {
        return work([=](float* w, const float* g, float* velocity, float*, std::size_t n) {
          apply_momentum<true>(w, g, velocity, n, plain);
        });
      }
      return work([=](float* w, const float* g, float* velocity, float*, std::size_t n) {
        apply_momentum<false>(w, g, velocity, n, plain);
      });
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      if (update_rule::takes_momentum(config, step.number)) {
        return work([c = update_rule::adam_constants(config, step)](float* w, const float* sum, float* m, float* v,
                                                                    std::size_t n) {
          apply_adam_from_momentum(w, sum, m, v, n, c);
        });
      }
      return work([c = update_rule::adam_constants(config, step)](float* w, const float* g, float* m, float* v,
                                                                  std::size_t n) { apply_adam(w, g, m, v, n, c); });
    case OptimizerKind::kAdagrad:
      return work(
          [c = update_rule::adagrad_constants(config, step)](float* w, const float* g, float* squares, float*,
                                                             std::size_t n) { apply_adagrad(w, g, squares, n, c); });
    case OptimizerKind::kFtrl:
      return work(
          [c = update_rule::ftrl_constants(config, step)](float* w, const float* g, float* z, float* squares,
                                                          std::size_t n) { apply_ftrl(w, g, z, squares, n, c); });
    case OptimizerKind::kMean:
      return work([=](float* w, const float* g, float*, float*, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) w[i] = plain.scale * g[i];
      });
  }
}

}  // namespace

std::size_t state_floats(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
    case OptimizerKind::kMean:
      return 0;
    case OptimizerKind::kMomentum:
    case OptimizerKind::kAdagrad:
      return 1;
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
    case OptimizerKind::kFtrl:
      return 2;
  }
  return 0;
}

OptimizerState::OptimizerState(OptimizerKind kind, std::size_t elements)
    : first_(state_floats(kind) > 0 ? elements : 0), second_(state_floats(kind) > 1 ? elements : 0) {}

void OptimizerState::save(Range range, std::size_t offset, TrainingState& state) const {
  const AlignedBuffer* const memories[] = {&first_, &second_};
  for (std::size_t i = 0; i < std::size(memories); ++i) {
    if (memories[i]->size() == 0) continue;
    state.put(state_part::kOptimizer[i], offset + range.begin, slice(memories[i]->span(), range));
  }
}

Status OptimizerState::restore(Range range, std::size_t offset, const TrainingState& state) {
  AlignedBuffer* const memories[] = {&first_, &second_};
  for (std::size_t i = 0; i < std::size(memories); ++i) {
    if (memories[i]->size() == 0) continue;
    SYNCOPATE_RETURN_IF_ERROR(state.read(state_part::kOptimizer[i], {offset + range.begin, offset + range.end},
                                         slice(memories[i]->span(), range)));
  }
  return Status();
}

Optimizer::Optimizer(OptimizerConfig config, std::span<const Range> undecayed) : config_(std::move(config)) {
  for (const Range& range : undecayed) groups_.push_back({.range = range});
}

Optimizer::Optimizer(OptimizerConfig config, std::span<const Range> undecayed, Range part)
    : Optimizer(config, config.weight_decay != 0 && !config.decay_all ? undecayed : std::span<const Range>()) {
  if (config_.groups == nullptr) return;
  assert(config_.decay_all);
  for (const UpdateGroup& group : *config_.groups) {
    for (const Range& range : ranges_within(std::span(&group.range, 1), part)) {
      groups_.push_back({range, group.rate_factor, group.weight_decay});
    }
  }
}

Optimizer::Optimizer(const OptimizerConfig& config, const ParamLayout& layout, Range part)
    : Optimizer(config, ranges_within(undecayed_ranges(layout), part), part) {}

template <typename Work>
void Optimizer::for_each_group(Range range, const Work& work) const {
  OptimizerConfig rule = config_;
  for_each_part(std::span<const UpdateGroup>(groups_), range, [&](Range part, const UpdateGroup* group) {
    rule.weight_decay = group == nullptr ? config_.weight_decay : group->weight_decay;
    work(part, rule, group == nullptr ? 1.0 : group->rate_factor);
  });
}

void Optimizer::apply(std::span<float> weights, std::span<const float> gradient, OptimizerState& state,
                      std::size_t offset, const UpdateStep& step) const {
  assert(gradient.size() == weights.size());
  const std::size_t remembered = state_floats(config_.kind);
  assert(remembered < 1 || offset + weights.size() <= state.first_.size());
  assert(remembered < 2 || state.second_.size() == state.first_.size());
  // Nothing is learnt there, and what is remembered stays zero.
  if (SharedZeros::holds(weights.data()) && SharedZeros::holds(gradient.data())) return;
  const FlushDenormals flush;
  float* const first = remembered > 0 ? state.first_.data() + offset : nullptr;
  float* const second = remembered > 1 ? state.second_.data() + offset : nullptr;
  for_each_group({offset, offset + weights.size()}, [&](Range part, const OptimizerConfig& rule, double rate_factor) {
    const std::size_t at = part.begin - offset;
    UpdateStep own = step;
    own.learning_rate *= rate_factor;
    with_rule(rule, own, [&](const auto& update) {
      update(weights.data() + at, gradient.data() + at, first == nullptr ? nullptr : first + at,
             second == nullptr ? nullptr : second + at, part.size());
    });
  });
}

bool Optimizer::takes_momentum_in(std::int64_t number) const { return update_rule::takes_momentum(config_, number); }

void Optimizer::own_momentum(std::span<const float> weights, std::span<float> gradient, const OptimizerState& state,
                             std::size_t offset) const {
  assert(gradient.size() == weights.size() && offset + weights.size() <= state.second_.size());
  assert(config_.takes_momentum && state_floats(config_.kind) == 2);
  const FlushDenormals flush;
  for_each_group({offset, offset + weights.size()}, [&](Range part, const OptimizerConfig& rule, double) {
    const std::size_t at = part.begin - offset;
    make_own_momentum(weights.data() + at, gradient.data() + at, state.first_.data() + part.begin,
                      state.second_.data() + part.begin, part.size(), update_rule::adam_constants(rule, {}));
  });
}

void Optimizer::apply_rows(std::span<float* const> rows, std::span<const float> gradients, std::size_t width,
                           const UpdateStep& step) const {
  assert(gradients.size() == rows.size() * width);
  // Rows lie anywhere: each is asked for so long before its turn that it has come from memory by then.
  constexpr std::size_t kAhead = 8;
  const std::size_t row_bytes = width * (1 + state_floats(config_.kind)) * sizeof(float);
  const FlushDenormals flush;
  OptimizerConfig of_gradients = config_;
  of_gradients.takes_momentum = false;
  with_rule(of_gradients, step, [&](const auto& update) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i + kAhead < rows.size()) prefetch(rows[i + kAhead], row_bytes);
      float* const row = rows[i];
      update(row, gradients.data() + i * width, row + width, row + 2 * width, width);
    }
  });
}

namespace update_rule {

UpdateConstants constants_of(const OptimizerConfig& config, const UpdateStep& step) {
  return {.momentum = momentum_constants(config, step),
          .adam = adam_constants(config, step),
          .adagrad = adagrad_constants(config, step),
          .ftrl = ftrl_constants(config, step)};
}

}  // namespace update_rule
}  // namespace syncopate
