// The update rule. The very same code runs in a worker (allreduce, local) and in a shard (ps), so that it never differs
// between modes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/os/aligned_buffer.h"
#include "common/param_layout.h"
#include "common/status.h"
#include "common/training_state.h"

namespace syncopate {

enum class OptimizerKind { kSgd, kMomentum, kAdam, kAdamW, kAdagrad, kFtrl };

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kSgd;
  float momentum = 0.9f;  // momentum only, in [0, 1)
  bool nesterov = false;  // momentum only (Sutskever 2013, section 2, in the form that PyTorch documents)
  float beta1 = 0.9f;     // adam, adamw (Kingma and Ba 2015, algorithm 1)
  float beta2 = 0.999f;   // adam, adamw
  float epsilon = 1e-8f;  // adam, adamw, adagrad
  // Of tensors of more than one dimension (decay_parts.h). Added to the gradient; adamw: decoupled from it, w -= rate ·
  // decay · w. That is PyTorch's form. Loshchilov and Hutter 2019, algorithm 2, decay by schedule multiplier · decay,
  // without the base rate: their decay is ours times the base rate.
  float weight_decay = 0.0f;
  bool decay_all = false;  // of all tensors
  // adam, adamw: after so many updates the second moment stays as it is, and its bias correction with it, so that
  // gradients enter the first moment alone (1-bit Adam: Tang et al. 2021, algorithm 1, whose T_w this is). 0: never.
  std::int64_t frozen_after = 0;
  // adam, adamw with frozen_after: in the updates behind it, apply() is given no gradient but the first moment itself,
  // which own_momentum() has made of gradients. That is the second stage of 1-bit Adam (Tang et al. 2021, algorithm 1),
  // where the moment travels compressed. Rows of tables are updated from gradients as ever.
  bool takes_momentum = false;
  // adagrad (Duchi, Hazan and Singer 2011, figure 1, diagonal): what sums of squares begin with.
  float initial_accumulator = 0.0f;
  // ftrl (McMahan and others 2013, algorithm 1, whose alpha is the learning rate, which has to be the same in all
  // updates). A weight that has had no gradient keeps the value that it began with; the paper's begin with zero. It
  // knows no weight decay but l2.
  float beta = 1.0f;
  float l1 = 0.0f;
  float l2 = 0.0f;
};

// What one update needs besides weights and gradient.
struct UpdateStep {
  float learning_rate = 0;
  float gradient_scale = 1;  // the gradient is multiplied by this first: 1/W turns a sum over W workers into their mean
  std::int64_t number = 1;   // 1 for the first update of these weights; adam's bias correction counts with it
};

// How many floats an optimizer remembers of each weight: 0, 1 or 2.
std::size_t state_floats(OptimizerKind kind);

// What an optimizer remembers of a range of weights: zeros at first.
class OptimizerState {
 public:
  OptimizerState(OptimizerKind kind, std::size_t elements);

  std::size_t bytes() const { return (first_.size() + second_.size()) * sizeof(float); }

  // Adds what is remembered of `range` to `state`, whose arena's element `offset` is this one's first; and the other
  // way round, which fails with data loss where something is missing.
  void save(Range range, std::size_t offset, TrainingState& state) const;
  Status restore(Range range, std::size_t offset, const TrainingState& state);

  // What is remembered of all weights: empty where nothing is. To be read and set between updates.
  std::array<std::span<float>, 2> memories() { return {first_.span(), second_.span()}; }

 private:
  friend class Optimizer;
  AlignedBuffer first_;   // momentum's velocity, adam's m, adagrad's sum of squares, ftrl's z
  AlignedBuffer second_;  // adam's v, ftrl's n
};

class Optimizer {
 public:
  // `undecayed` are the ranges of the state, ascending and apart, that weight decay leaves out.
  explicit Optimizer(OptimizerConfig config, std::vector<Range> undecayed = {})
      : config_(config), undecayed_(std::move(undecayed)) {}
  // Of `part` of a layout's arena, where the state's first element is the part's: with the layout's biases and norms
  // left out of weight decay, unless config.decay_all.
  Optimizer(const OptimizerConfig& config, const ParamLayout& layout, Range part);

  const OptimizerConfig& config() const { return config_; }
  // Of the updates that follow.
  void set_momentum(float momentum) { config_.momentum = momentum; }

  // Updates `weights` in place from `gradient` (same length), which is a moment where takes_momentum_in(step.number).
  // `offset` says where in `state` the first element's memory lies, so that a range may be updated in parts, in any
  // order. Allocates nothing. Thread-compatible: one caller at a time for one range of one state.
  void apply(std::span<float> weights, std::span<const float> gradient, OptimizerState& state, std::size_t offset,
             const UpdateStep& step) const;

  // Whether update `number` takes the first moment in place of a gradient.
  bool takes_momentum_in(std::int64_t number) const;

  // Of updates that do: what a worker tells of its gradient. Each element becomes
  //
  //   beta1 · m + (1 - beta1) · (gradient + coupled weight decay · weight)
  //
  // with m the moment that the last update left (Tang et al. 2021, algorithm 1, line 7); the next apply() is given the
  // sum of these over all workers. An element whose variance is zero becomes zero, and apply() leaves its weight to
  // decoupled weight decay alone: what a codec makes of its zero, divided by epsilon, would throw it far away. Other
  // arguments, and threading, are as apply() has them.
  void own_momentum(std::span<const float> weights, std::span<float> gradient, const OptimizerState& state,
                    std::size_t offset) const;

  // Updates rows that lie apart: each of `rows` points to `width` weights, and to what is remembered of them, which
  // lies behind: `width` floats, or twice as many, as state_floats says. `gradients` is (rows, width). An element comes
  // out as apply would leave it, with weight decay: rows are of tables, which have two dimensions.
  void apply_rows(std::span<float* const> rows, std::span<const float> gradients, std::size_t width,
                  const UpdateStep& step) const;

 private:
  OptimizerConfig config_;
  std::vector<Range> undecayed_;
};

}  // namespace syncopate
