// UpdateRules: the update rules by name, and the numbers and variants that mean something to each. What people can ask
// for, in a run, in the library and in Python, follows from these rows.
#pragma once

#include <string_view>

#include "common/optimizer/optimizer.h"

namespace syncopate {

// A number of some rules, finite and at least 0.
struct RuleNumber {
  std::string_view name;
  float OptimizerConfig::*member;
  bool (*is_of)(OptimizerKind kind);  // whether it means something to such a rule
  bool is_below_one = false;
};

namespace rule_number {

inline constexpr RuleNumber kMomentum{"momentum", &OptimizerConfig::momentum, [](OptimizerKind kind) {
                                        return kind == OptimizerKind::kMomentum || kind == OptimizerKind::kRmsprop ||
                                               kind == OptimizerKind::kLars;
                                      }};
inline constexpr RuleNumber kDampening{"dampening", &OptimizerConfig::dampening,
                                       [](OptimizerKind kind) { return kind == OptimizerKind::kMomentum; }};
inline constexpr RuleNumber kBeta1{"beta1", &OptimizerConfig::beta1,
                                   [](OptimizerKind kind) {
                                     return kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamW ||
                                            kind == OptimizerKind::kAdamax || kind == OptimizerKind::kRadam ||
                                            kind == OptimizerKind::kLamb;
                                   },
                                   true};
inline constexpr RuleNumber kBeta2{"beta2", &OptimizerConfig::beta2, kBeta1.is_of, true};
inline constexpr RuleNumber kRho{
    "rho", &OptimizerConfig::rho,
    [](OptimizerKind kind) { return kind == OptimizerKind::kRmsprop || kind == OptimizerKind::kAdadelta; }, true};
inline constexpr RuleNumber kEpsilon{"epsilon", &OptimizerConfig::epsilon, [](OptimizerKind kind) {
                                       return kBeta2.is_of(kind) || kRho.is_of(kind) || kind == OptimizerKind::kAdagrad;
                                     }};
inline constexpr RuleNumber kWeightDecay{"weight_decay", &OptimizerConfig::weight_decay,
                                         [](OptimizerKind kind) { return kind != OptimizerKind::kFtrl; }};
inline constexpr RuleNumber kTrustCoefficient{"trust_coefficient", &OptimizerConfig::trust_coefficient,
                                              [](OptimizerKind kind) { return kind == OptimizerKind::kLars; }};
inline constexpr RuleNumber kInitialAccumulator{"initial_accumulator", &OptimizerConfig::initial_accumulator,
                                                [](OptimizerKind kind) { return kind == OptimizerKind::kAdagrad; }};
inline constexpr RuleNumber kLrDecay{"lr_decay", &OptimizerConfig::lr_decay, kInitialAccumulator.is_of};
inline constexpr RuleNumber kL1{"l1", &OptimizerConfig::l1,
                                [](OptimizerKind kind) { return kind == OptimizerKind::kFtrl; }};
inline constexpr RuleNumber kL2{"l2", &OptimizerConfig::l2, kL1.is_of};
inline constexpr RuleNumber kBeta{"beta", &OptimizerConfig::beta, kL1.is_of};

}  // namespace rule_number

inline constexpr const RuleNumber* kRuleNumbers[] = {
    &rule_number::kMomentum,
    &rule_number::kDampening,
    &rule_number::kBeta1,
    &rule_number::kBeta2,
    &rule_number::kRho,
    &rule_number::kEpsilon,
    &rule_number::kWeightDecay,
    &rule_number::kL1,
    &rule_number::kL2,
    &rule_number::kBeta,
    &rule_number::kLrDecay,
    &rule_number::kInitialAccumulator,
    &rule_number::kTrustCoefficient,
};

// A variant of some rules.
struct RuleFlag {
  std::string_view name;
  bool OptimizerConfig::*member;
  bool (*is_of)(OptimizerKind kind);
};

inline constexpr RuleFlag kRuleFlags[] = {
    {"amsgrad", &OptimizerConfig::amsgrad,
     [](OptimizerKind kind) { return kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamW; }},
    {"centered", &OptimizerConfig::centered, [](OptimizerKind kind) { return kind == OptimizerKind::kRmsprop; }},
    {"adapt", &OptimizerConfig::adapt, is_layerwise},
    {"maximize", &OptimizerConfig::maximize, [](OptimizerKind kind) { return kind != OptimizerKind::kFtrl; }},
};

struct UpdateRule {
  const char* name;
  OptimizerKind kind;
  bool nesterov = false;
};

inline constexpr UpdateRule kUpdateRules[] = {
    {"sgd", OptimizerKind::kSgd},
    {"momentum", OptimizerKind::kMomentum},
    {"nesterov", OptimizerKind::kMomentum, true},
    {"adam", OptimizerKind::kAdam},
    {"adamw", OptimizerKind::kAdamW},
    {"adagrad", OptimizerKind::kAdagrad},
    {"ftrl", OptimizerKind::kFtrl},
    {"rmsprop", OptimizerKind::kRmsprop},
    {"adadelta", OptimizerKind::kAdadelta},
    {"adamax", OptimizerKind::kAdamax},
    {"radam", OptimizerKind::kRadam},
    {"lars", OptimizerKind::kLars},
    {"lamb", OptimizerKind::kLamb},
};

}  // namespace syncopate
