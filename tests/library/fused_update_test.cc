#include "library/fused_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace syncopate::library {
namespace {

using Floats = std::vector<float>;

Floats gradient_of(std::size_t size, int step) {
  Floats gradient(size);
  for (std::size_t i = 0; i < size; ++i) gradient[i] = std::sin(static_cast<float>(i) + static_cast<float>(7 * step));
  return gradient;
}

TEST(FusedUpdate, MakesTheUpdatesOfEachTensorsOwnRule) {
  const OptimizerConfig adam{.kind = OptimizerKind::kAdam, .weight_decay = 0.1f},
      momentum{.kind = OptimizerKind::kMomentum, .momentum = 0.5f};
  FusedUpdate update({0, 1}, {100, 7});
  update.set_rule(0, adam);
  update.set_rule(1, momentum);
  Floats weights[] = {Floats(100, 1.0f), Floats(7, 2.0f)}, right[] = {weights[0], weights[1]};
  const Optimizer rules[] = {Optimizer(adam), Optimizer(momentum)};
  OptimizerState states[] = {{adam, 100}, {momentum, 7}};
  std::int64_t updates[] = {0, 0};
  for (int step = 0; step < 5; ++step) {
    for (const std::size_t tensor : {0u, 1u}) {
      if (tensor == 0 && step == 2) continue;  // has no gradient: its bias correction stays behind
      const Floats gradient = gradient_of(weights[tensor].size(), step);
      update.apply(tensor, weights[tensor], gradient, 0.1);
      rules[tensor].apply(right[tensor], gradient, states[tensor], 0,
                          {.learning_rate = 0.1f, .number = ++updates[tensor]});
    }
  }
  EXPECT_EQ(weights[0], right[0]);
  EXPECT_EQ(weights[1], right[1]);
  EXPECT_THAT(update.updates(), testing::ElementsAre(4, 5));
}

TEST(FusedUpdate, GoesOnFromWhatItRemembers) {
  const OptimizerConfig adam{.kind = OptimizerKind::kAdam};
  FusedUpdate one({0}, {9}), other({0}, {9});
  one.set_rule(0, adam);
  other.set_rule(0, adam);
  Floats weights(9, 1.0f);
  for (int step = 0; step < 3; ++step) one.apply(0, weights, gradient_of(9, step), 0.1);
  Floats first(9), second(9), others = weights;
  const TensorMemories memories{{first}, {second}};
  one.save(memories);
  other.restore(one.updates(), memories);
  one.apply(0, weights, gradient_of(9, 3), 0.1);
  other.apply(0, others, gradient_of(9, 3), 0.1);
  EXPECT_EQ(weights, others);
}

TEST(FusedUpdate, KeepsItsMemoriesWhereNumbersOfTheRuleChange) {
  FusedUpdate update({0}, {2});
  update.set_rule(0, {.kind = OptimizerKind::kMomentum, .momentum = 0.9f});
  Floats weights(2, 0.0f);
  update.apply(0, weights, Floats(2, 1.0f), 1);
  update.set_rule(0, {.kind = OptimizerKind::kMomentum, .momentum = 0.5f});
  update.apply(0, weights, Floats(2, 1.0f), 1);
  EXPECT_THAT(weights, testing::Each(-1.0f - 1.5f));
  update.set_rule(0, {.kind = OptimizerKind::kSgd});
  update.apply(0, weights, Floats(2, 1.0f), 1);
  EXPECT_THAT(weights, testing::Each(-2.5f - 1.0f));
  update.set_rule(0, {.kind = OptimizerKind::kMomentum, .momentum = 1.0f});
  update.apply(0, weights, Floats(2, 1.0f), 1);
  EXPECT_THAT(weights, testing::Each(-3.5f - 2.5f));
}

}  // namespace
}  // namespace syncopate::library
