// The update rules. The same code runs in a worker (allreduce, local) and in a shard (ps), so that modes never differ.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/optimizer/decay_parts.h"
#include "common/os/aligned_buffer.h"
#include "common/param_layout.h"
#include "common/status.h"
#include "common/training_state.h"

namespace syncopate {

enum class OptimizerKind {
  kSgd,
  kMomentum,
  kAdam,
  kAdamW,
  kAdagrad,
  kFtrl,
  kRmsprop,
  kAdadelta,
  kAdamax,
  kRadam,
  kLars,
  kLamb,
  kMean,  // makes no update: leaves the mean gradient in place of the weights, for whoever makes it elsewhere
};

// Whether a rule multiplies the change of each tensor by a trust ratio, which it works out from norms of the whole
// tensor. As in the authors' code, tensors of one dimension (biases, norms) have none, and do not decay: under lars
// they are trained by plain momentum, under lamb by adam.
constexpr bool is_layerwise(OptimizerKind kind) { return kind == OptimizerKind::kLars || kind == OptimizerKind::kLamb; }

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kSgd;
  float momentum = 0.9f;  // momentum, rmsprop, lars, in [0, 1)
  bool nesterov = false;  // momentum only (Sutskever 2013, section 2, in the form that PyTorch documents)
  float dampening = 0;    // momentum only: from the second update on, a velocity takes 1 - dampening of the gradient
  // adam, adamw (Kingma and Ba 2015, algorithm 1), adamax (the same, algorithm 2), radam (Liu and others 2020,
  // algorithm 2), lamb (You and others 2020, algorithm 2, with phi(x) = x)
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;  // also of adagrad, rmsprop, adadelta
  bool amsgrad =
      false;  // adam, adamw: divides by the largest second moment so far (Reddi and others 2018, algorithm 2)
  // rmsprop (Tieleman and Hinton 2012, lecture 6.5), adadelta (Zeiler 2012, algorithm 1): what means of squares keep in
  // each update
  float rho = 0.9f;
  bool centered = false;  // rmsprop: divides by the deviation (Graves 2013, equations 38 to 40, in PyTorch's form)
  // lars (You, Gitman and Ginsburg 2017, algorithm 1, whose eta this is).
  float trust_coefficient = 0.001f;
  bool adapt = true;      // lars, lamb: without trust ratios where this is false
  bool maximize = false;  // goes up: takes the gradient with the other sign
  // For tensors of more than one dimension (decay_parts.h). Added to the gradient; in adamw it is decoupled from it: w
  // -= rate · decay · w, as in PyTorch. Loshchilov and Hutter 2019, algorithm 2, decay by schedule multiplier · decay,
  // without the base rate: their decay is ours times the base rate.
  float weight_decay = 0.0f;
  bool decay_all = false;  // for all tensors
  // adam, adamw: after so many updates the second moment stays as it is, and its bias correction with it, so that
  // gradients enter the first moment alone (1-bit Adam: Tang et al. 2021, algorithm 1, whose T_w this is). 0: never.
  std::int64_t frozen_after = 0;
  // adam, adamw with frozen_after: in the updates behind it, apply() is given no gradient but the first moment itself,
  // which own_momentum() has made of gradients. That is the second stage of 1-bit Adam (Tang et al. 2021, algorithm 1),
  // where the moment travels compressed. Rows of tables are updated from gradients as ever.
  bool takes_momentum = false;
  // adagrad (Duchi, Hazan and Singer 2011, figure 1, diagonal): the initial value of the sums of squares, and what
  // divides the rate of update n: 1 + (n - 1) · lr_decay.
  float initial_accumulator = 0.0f;
  float lr_decay = 0.0f;
  // ftrl (McMahan and others 2013, algorithm 1, whose alpha is the learning rate, which must be the same in all
  // updates). A weight that has had no gradient keeps its initial value; the paper's begin with zero. The only weight
  // decay is l2.
  float beta = 1.0f;
  float l1 = 0.0f;
  float l2 = 0.0f;
  // Parts of the whole arena, ascending and disjoint, with rates and decays of their own, which rows of tables and
  // updates on devices do not know. Requires decay_all, or a rule that goes by layer. Null: none.
  std::shared_ptr<const std::vector<UpdateGroup>> groups = {};
};

// The arguments of an update besides weights and gradient.
struct UpdateStep {
  double learning_rate = 0;  // what an element is updated with is a float
  float gradient_scale = 1;  // multiplies the gradient first: 1/W turns a sum over W workers into their mean
  std::int64_t number = 1;   // 1 for the first update of these weights, by which bias corrections count
};

// The most that a rule remembers of a weight.
inline constexpr std::size_t kMostMemories = std::size(state_part::kOptimizer);

// Returns the floats of optimizer state per weight: 0 to kMostMemories.
std::size_t state_floats(const OptimizerConfig& config);

// The optimizer state of a range of weights: zeros at first.
class OptimizerState {
 public:
  OptimizerState(const OptimizerConfig& config, std::size_t elements);

  std::size_t bytes() const;

  // save adds the state of `range` to `state`, in which this object's first element has place `offset` of the arena.
  // restore reads it back, and fails with data loss if something is missing.
  void save(Range range, std::size_t offset, TrainingState& state) const;
  Status restore(Range range, std::size_t offset, const TrainingState& state);

  // The state of all weights, empty where there is none, in the order that each rule says (update_rule.h). It may be
  // read and set between updates.
  std::array<std::span<float>, kMostMemories> memories();
  std::array<std::span<const float>, kMostMemories> memories() const;

 private:
  friend class Optimizer;
  std::array<AlignedBuffer, kMostMemories> memories_;
};

class Optimizer {
 public:
  // `undecayed` are the ranges of the state, ascending and disjoint, that weight decay leaves out.
  explicit Optimizer(OptimizerConfig config, std::span<const Range> undecayed = {});
  // For the range `part` of the arena. `undecayed` counts from its beginning; config.decay_all and config.groups hold.
  Optimizer(OptimizerConfig config, std::span<const Range> undecayed, Range part);
  // For `part` of a layout's arena, where the state's first element is the part's first. Weight decay leaves out the
  // layout's biases and norms, unless config.decay_all.
  Optimizer(const OptimizerConfig& config, const ParamLayout& layout, Range part);

  const OptimizerConfig& config() const { return config_; }
  // Sets the momentum of the updates that follow.
  void set_momentum(float momentum) { config_.momentum = momentum; }

  // Updates `weights` in place from `gradient` (same length), which is a moment if takes_momentum_in(step.number).
  // `offset` is the place of the first element in `state`, so that a range may be updated in parts, in any order. A
  // rule that goes by layer must be given whole tensors, and one alone where the optimizer was made without a layout.
  // Allocates nothing. Thread-compatible: one caller at a time for one range of one state.
  void apply(std::span<float> weights, std::span<const float> gradient, OptimizerState& state, std::size_t offset,
             const UpdateStep& step) const;

  // Whether update `number` takes the first moment in place of a gradient.
  bool takes_momentum_in(std::int64_t number) const;

  // For updates that take momentum: computes from a worker's gradient what it sends. Each element becomes
  //
  //   beta1 · m + (1 - beta1) · (gradient + coupled weight decay · weight)
  //
  // with m the moment that the last update left (Tang et al. 2021, algorithm 1, line 7); the next apply() takes the sum
  // of these over all workers. An element whose variance is zero becomes zero, and apply() changes its weight only by
  // decoupled weight decay: the codec's error for this zero, divided by epsilon, would throw it far away. Other
  // arguments, and threading, are as for apply().
  void own_momentum(std::span<const float> weights, std::span<float> gradient, const OptimizerState& state,
                    std::size_t offset) const;

  // Updates rows that need not be adjacent: each of `rows` points to `width` weights, followed by their optimizer
  // state: `width` floats as often as state_floats says. `gradients` is (rows, width). Each element gets the
  // same result as from apply, with weight decay, since rows are of tables, which have two dimensions.
  void apply_rows(std::span<float* const> rows, std::span<const float> gradients, std::size_t width,
                  const UpdateStep& step) const;

 private:
  // Calls work(part, rule, rate_factor) for parts that cover `range`.
  template <typename Work>
  void for_each_group(Range range, const Work& work) const;

  OptimizerConfig config_;
  std::vector<UpdateGroup> groups_;  // of the state
  std::vector<Range> layers_;        // of the state: tensors, under a rule that goes by layer, if there is a layout
};

}  // namespace syncopate
