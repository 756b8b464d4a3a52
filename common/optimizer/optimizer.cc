#include "common/optimizer/optimizer.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numeric>

#include "common/optimizer/decay_parts.h"
#include "common/optimizer/update_rule.h"
#include "common/os/aligned_buffer.h"
#include "common/os/flush_denormals.h"
#include "common/os/prefetch.h"
#include "common/os/target_clones.h"
#include "common/tensor_ranges.h"

// This file is compiled without contraction to fused multiply-add (see cmake/Options.cmake): a vector body and its
// scalar tail then round alike, so that the result of an element does not depend on how a range was cut.

namespace syncopate {
namespace {

using update_rule::AdamConstants;

using Memories = std::array<float*, kMostMemories>;

// The constants are copies, so that a loop need not fear that a store changes them.
template <typename Rule, typename Constants>
SYNCOPATE_CLONES void apply_rule(float* __restrict w, const float* __restrict g, float* __restrict first,
                                 float* __restrict second, float* __restrict third, std::size_t n, Constants c) {
  for (std::size_t i = 0; i < n; ++i) update_rule::apply_at<Rule>(w[i], g[i], first, second, third, i, c);
}

SYNCOPATE_CLONES void make_own_momentum(const float* __restrict w, float* __restrict g, const float* __restrict m,
                                        const float* __restrict v, std::size_t n, AdamConstants c) {
  for (std::size_t i = 0; i < n; ++i) g[i] = update_rule::own_momentum(w[i], g[i], m[i], v[i], c);
}

// Norms are summed in so many lanes, in double precision: the same bits whatever the vector's length.
constexpr std::size_t kLanes = 16;

template <typename Rule, typename Constants>
SYNCOPATE_CLONES void measure(const float* __restrict w, const float* __restrict g, float* __restrict first,
                              float* __restrict second, std::size_t n, Constants c, double* __restrict weights,
                              double* __restrict directions) {
  for (std::size_t begin = 0; begin < n; begin += kLanes) {
    const std::size_t lanes = n - begin < kLanes ? n - begin : kLanes;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const std::size_t i = begin + lane;
      float direction = 0;
      if constexpr (Rule::kMemories == 1) direction = Rule::direction(w[i], g[i], first[i], c);
      if constexpr (Rule::kMemories == 2) direction = Rule::direction(w[i], g[i], first[i], second[i], c);
      weights[lane] += static_cast<double>(w[i]) * static_cast<double>(w[i]);
      directions[lane] += static_cast<double>(direction) * static_cast<double>(direction);
    }
  }
}

// The update of a whole tensor by a rule that goes by layer.
template <typename Rule, typename Constants>
void update_layer(float* w, const float* g, const Memories& m, std::size_t n, Constants c, bool adapts) {
  std::array<double, kLanes> weights{}, directions{};
  measure<Rule>(w, g, m[0], m[1], n, c, weights.data(), directions.data());
  const auto norm = [](const auto& squares) { return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0)); };
  if (adapts) c.trust = Rule::trust_of(norm(weights), norm(directions), c);
  apply_rule<Rule>(w, g, m[0], m[1], m[2], n, c);
}

// Calls work(update), where update(weights, gradient, memories, count) is the rule with this step's constants.
template <typename Work>
void with_update(const OptimizerConfig& config, const UpdateStep& step, const Work& work) {
  const auto of_rule = [&]<typename Rule>(Rule) {
    work([c = update_rule::constants_of(config, step).*(Rule::kConstants), adapts = config.adapt](
             float* w, const float* g, const Memories& m, std::size_t n) {
      if constexpr (update_rule::Layerwise<Rule>) {
        update_layer<Rule>(w, g, m, n, c, adapts);
      } else {
        apply_rule<Rule>(w, g, m[0], m[1], m[2], n, c);
      }
    });
  };
  if (update_rule::takes_momentum(config, step.number)) return of_rule(update_rule::AdamFromMomentum());
  update_rule::with_rule(config, of_rule);
}

}  // namespace

std::size_t state_floats(const OptimizerConfig& config) {
  return update_rule::with_rule(config, []<typename Rule>(Rule) { return Rule::kMemories; });
}

OptimizerState::OptimizerState(const OptimizerConfig& config, std::size_t elements) {
  for (AlignedBuffer& memory : std::span(memories_).first(state_floats(config))) memory = AlignedBuffer(elements);
}

std::size_t OptimizerState::bytes() const {
  std::size_t floats = 0;
  for (const AlignedBuffer& memory : memories_) floats += memory.size();
  return floats * sizeof(float);
}

std::array<std::span<float>, kMostMemories> OptimizerState::memories() {
  std::array<std::span<float>, kMostMemories> spans;
  for (std::size_t i = 0; i < kMostMemories; ++i) spans[i] = memories_[i].span();
  return spans;
}

std::array<std::span<const float>, kMostMemories> OptimizerState::memories() const {
  std::array<std::span<const float>, kMostMemories> spans;
  for (std::size_t i = 0; i < kMostMemories; ++i) spans[i] = memories_[i].span();
  return spans;
}

void OptimizerState::save(Range range, std::size_t offset, TrainingState& state) const {
  for (std::size_t i = 0; i < kMostMemories; ++i) {
    if (memories_[i].size() == 0) continue;
    state.put(state_part::kOptimizer[i], offset + range.begin, slice(memories_[i].span(), range));
  }
}

Status OptimizerState::restore(Range range, std::size_t offset, const TrainingState& state) {
  for (std::size_t i = 0; i < kMostMemories; ++i) {
    if (memories_[i].size() == 0) continue;
    SYNCOPATE_RETURN_IF_ERROR(state.read(state_part::kOptimizer[i], {offset + range.begin, offset + range.end},
                                         slice(memories_[i].span(), range)));
  }
  return Status();
}

Optimizer::Optimizer(OptimizerConfig config, std::span<const Range> undecayed) : config_(std::move(config)) {
  for (const Range& range : undecayed) groups_.push_back({.range = range});
}

Optimizer::Optimizer(OptimizerConfig config, std::span<const Range> undecayed, Range part)
    : config_(std::move(config)) {
  const bool goes_by_layer = is_layerwise(config_.kind);
  if (config_.groups == nullptr) {
    if (!goes_by_layer && (config_.weight_decay == 0 || config_.decay_all)) return;
    const float decay = config_.decay_all ? config_.weight_decay : 0;
    for (const Range& range : undecayed) groups_.push_back({.range = range, .weight_decay = decay, .adapt = false});
    return;
  }
  assert(config_.decay_all || goes_by_layer);
  for (const UpdateGroup& group : *config_.groups) {
    for (const Range& range : ranges_within(std::span(&group.range, 1), part)) {
      groups_.push_back({range, group.rate_factor, group.weight_decay, group.adapt});
    }
  }
}

Optimizer::Optimizer(const OptimizerConfig& config, const ParamLayout& layout, Range part)
    : Optimizer(config, ranges_within(undecayed_ranges(layout), part), part) {
  if (is_layerwise(config.kind)) layers_ = ranges_within(tensor_ranges(layout), part);
}

template <typename Work>
void Optimizer::for_each_group(Range range, const Work& work) const {
  OptimizerConfig rule = config_;
  for_each_part(std::span<const UpdateGroup>(groups_), range, [&](Range part, const UpdateGroup* group) {
    rule.weight_decay = group == nullptr ? config_.weight_decay : group->weight_decay;
    rule.adapt = group == nullptr ? config_.adapt : group->adapt;
    const double rate_factor = group == nullptr ? 1.0 : group->rate_factor;
    if (layers_.empty()) return work(part, rule, rate_factor);
    for_each_part(std::span<const Range>(layers_), part, [&](Range layer, [[maybe_unused]] const Range* tensor) {
      assert(tensor == nullptr || *tensor == layer);
      work(layer, rule, rate_factor);
    });
  });
}

void Optimizer::apply(std::span<float> weights, std::span<const float> gradient, OptimizerState& state,
                      std::size_t offset, const UpdateStep& step) const {
  assert(gradient.size() == weights.size());
  // Nothing is learnt there, and what is remembered stays zero.
  if (SharedZeros::holds(weights.data()) && SharedZeros::holds(gradient.data())) return;
  const FlushDenormals flush;
  const std::size_t remembered = state_floats(config_);
  for_each_group({offset, offset + weights.size()}, [&](Range part, const OptimizerConfig& rule, double rate_factor) {
    const std::size_t at = part.begin - offset;
    UpdateStep own = step;
    own.learning_rate *= rate_factor;
    Memories memories{};
    for (std::size_t i = 0; i < remembered; ++i) {
      assert(part.end <= state.memories_[i].size());
      memories[i] = state.memories_[i].data() + part.begin;
    }
    with_update(rule, own,
                [&](const auto& update) { update(weights.data() + at, gradient.data() + at, memories, part.size()); });
  });
}

bool Optimizer::takes_momentum_in(std::int64_t number) const { return update_rule::takes_momentum(config_, number); }

void Optimizer::own_momentum(std::span<const float> weights, std::span<float> gradient, const OptimizerState& state,
                             std::size_t offset) const {
  assert(gradient.size() == weights.size() && offset + weights.size() <= state.memories_[1].size());
  assert(config_.takes_momentum && state_floats(config_) == 2);
  const FlushDenormals flush;
  for_each_group({offset, offset + weights.size()}, [&](Range part, const OptimizerConfig& rule, double) {
    const std::size_t at = part.begin - offset;
    make_own_momentum(weights.data() + at, gradient.data() + at, state.memories_[0].data() + part.begin,
                      state.memories_[1].data() + part.begin, part.size(), update_rule::adam_constants(rule, {}));
  });
}

void Optimizer::apply_rows(std::span<float* const> rows, std::span<const float> gradients, std::size_t width,
                           const UpdateStep& step) const {
  assert(gradients.size() == rows.size() * width);
  // Rows lie anywhere: each is asked for so long before its turn that it has come from memory by then.
  constexpr std::size_t kAhead = 8;
  const std::size_t row_bytes = width * (1 + state_floats(config_)) * sizeof(float);
  const FlushDenormals flush;
  OptimizerConfig of_gradients = config_;
  of_gradients.takes_momentum = false;
  with_update(of_gradients, step, [&](const auto& update) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i + kAhead < rows.size()) prefetch(rows[i + kAhead], row_bytes);
      float* const row = rows[i];
      update(row, gradients.data() + i * width, {row + width, row + 2 * width, row + 3 * width}, width);
    }
  });
}

namespace update_rule {

UpdateConstants constants_of(const OptimizerConfig& config, const UpdateStep& step) {
  return {.momentum = momentum_constants(config, step),
          .adam = adam_constants(config, step),
          .adagrad = adagrad_constants(config, step),
          .ftrl = ftrl_constants(config, step),
          .squares = squares_constants(config, step),
          .layer = layer_constants(config, step)};
}

}  // namespace update_rule
}  // namespace syncopate
