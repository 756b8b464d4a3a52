// OptimizerChoice: the update rules that a run can ask for, and one row of traits for each. The option, its conditions
// and the usual rates follow from the rows.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/optimizer/update_rules.h"

namespace syncopate::experiments {

enum class OptimizerChoice {
  kSgd,
  kMomentum,
  kNesterov,
  kAdam,
  kAdamW,
  kAdagrad,
  kFtrl,
  kRmsprop,
  kAdadelta,
  kAdamax,
  kRadam,
  kLars,
  kLamb
};

struct OptimizerTraits : UpdateRule {
  OptimizerChoice choice;
  double usual_rate = 0;
  // A rate between those at which the weights of norms, which move least, hardly move and those at which training is
  // unstable: the one of compare's equality check.
  double equality_rate = 0;
};

// In the order of kUpdateRules. The usual rates of adam, adamw and adamax are those of Kingma and Ba 2015, sections 2
// and 7.1. The steps of these, adagrad, rmsprop, adadelta and radam do not shrink with the gradient: a tenth of the
// usual rate is right for the equality check. Those of lars and lamb are in proportion to the weights: at these rates a
// step of one worker's usual batch moves a tensor by about 1 % of its norm.
inline constexpr OptimizerTraits kOptimizers[] = {
    {kUpdateRules[0], OptimizerChoice::kSgd, 0.1, 0.1},
    {kUpdateRules[1], OptimizerChoice::kMomentum, 0.01, 0.03},
    {kUpdateRules[2], OptimizerChoice::kNesterov, 0.01, 0.03},
    {kUpdateRules[3], OptimizerChoice::kAdam, 0.001, 0.001 / 10},
    {kUpdateRules[4], OptimizerChoice::kAdamW, 0.001, 0.001 / 10},
    {kUpdateRules[5], OptimizerChoice::kAdagrad, 0.01, 0.01 / 10},
    {kUpdateRules[6], OptimizerChoice::kFtrl, 0.1, 0.2},
    {kUpdateRules[7], OptimizerChoice::kRmsprop, 0.001, 0.001 / 10},
    {kUpdateRules[8], OptimizerChoice::kAdadelta, 1, 1.0 / 10},
    {kUpdateRules[9], OptimizerChoice::kAdamax, 0.002, 0.002 / 10},
    {kUpdateRules[10], OptimizerChoice::kRadam, 0.001, 0.001 / 10},
    {kUpdateRules[11], OptimizerChoice::kLars, 1, 1.0 / 10},
    {kUpdateRules[12], OptimizerChoice::kLamb, 0.01, 0.01 / 10},
};
static_assert(std::size(kOptimizers) == std::size(kUpdateRules));

constexpr const OptimizerTraits& traits_of(OptimizerChoice choice) {
  return *std::ranges::find(kOptimizers, choice, &OptimizerTraits::choice);
}
constexpr const char* name_of(OptimizerChoice choice) { return traits_of(choice).name; }

inline std::optional<OptimizerChoice> optimizer_named(std::string_view name) {
  const auto found = std::ranges::find(kOptimizers, name, &OptimizerTraits::name);
  return found == std::end(kOptimizers) ? std::nullopt : std::optional(found->choice);
}

// Whether a number means something to the rule.
constexpr bool has(const OptimizerTraits& traits, const RuleNumber& number) { return number.is_of(traits.kind); }
// Plain momentum, which codecs and stale gradients can be corrected for.
constexpr bool has_momentum(const OptimizerTraits& traits) { return traits.kind == OptimizerKind::kMomentum; }
// Whether it needs whole tensors.
constexpr bool goes_by_layer(const OptimizerTraits& traits) { return is_layerwise(traits.kind); }
// First and second moments of the gradient, of which the second can be frozen.
constexpr bool has_moments(const OptimizerTraits& traits) {
  return traits.kind == OptimizerKind::kAdam || traits.kind == OptimizerKind::kAdamW;
}

// Returns the names of the rows for which `holds`, in order.
inline std::vector<std::string> optimizer_names(const std::function<bool(const OptimizerTraits&)>& holds) {
  std::vector<std::string> names;
  for (const OptimizerTraits& traits : kOptimizers) {
    if (holds(traits)) names.emplace_back(traits.name);
  }
  return names;
}

}  // namespace syncopate::experiments
