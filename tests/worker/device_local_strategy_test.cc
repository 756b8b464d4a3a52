#include "worker/device_local_strategy.h"

#include <gtest/gtest.h>

#include "tests/support/device_training.h"

namespace syncopate::worker {
namespace {

using testing_support::ShadowDevice;
using testing_support::train_in_plain_loops;
using testing_support::train_on_device;

constexpr Duration kTimeout = std::chrono::seconds(20);

TEST(DeviceLocalStrategy, MakesTheUpdatesOfEveryRule) {
  const SteadyClock clock;
  for (OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    const OptimizerConfig optimizer{.kind = kind, .weight_decay = 0.01f};
    ShadowDevice device(3);
    DeviceLocalStrategy strategy(optimizer, device, ElementType::kFloat32, clock, kTimeout);
    EXPECT_EQ(train_on_device(strategy, device, 5), train_in_plain_loops(optimizer, 5));
  }
}

TEST(DeviceLocalStrategy, MakesTheSameUpdatesWhereStepsAreLaunchedAsGraphs) {
  const SteadyClock clock;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const OptimizerConfig optimizer{.kind = OptimizerKind::kAdamW, .weight_decay = 0.01f};
    ShadowDevice device(seed);
    DeviceLocalStrategy strategy(optimizer, device, ElementType::kFloat32, clock, kTimeout);
    EXPECT_EQ(train_on_device(strategy, device, 12, nullptr, true), train_in_plain_loops(optimizer, 12));
  }
}

TEST(DeviceLocalStrategy, GoesOnFromWhatAnotherHasSaved) {
  const SteadyClock clock;
  for (OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam}) {
    const OptimizerConfig optimizer{.kind = kind};
    ShadowDevice device(3), other(3);
    DeviceLocalStrategy before(optimizer, device, ElementType::kFloat32, clock, kTimeout),
        after(optimizer, other, ElementType::kFloat32, clock, kTimeout);
    train_on_device(before, device, 3);
    TrainingState state;
    ASSERT_TRUE(before.save(state).ok());
    EXPECT_EQ(state.step, 3);
    EXPECT_EQ(train_on_device(after, other, 5, &state), train_in_plain_loops(optimizer, 5));
  }
}

TEST(DeviceLocalStrategy, RefusesAStateThatLacksSomething) {
  const SteadyClock clock;
  ShadowDevice device;
  DeviceLocalStrategy strategy({.kind = OptimizerKind::kAdam}, device, ElementType::kFloat32, clock, kTimeout);
  const ParamLayout layout = testing_support::small_layout();
  ASSERT_TRUE(strategy.allocate(layout).ok());
  TrainingState state;
  state.put(state_part::kWeights, 0, std::vector<float>(layout.size()));
  EXPECT_EQ(strategy.restore(state).code(), Code::kDataLoss);
}

TEST(DeviceLocalStrategy, EndsInTimeWhereTheDeviceHangs) {
  const SteadyClock clock;
  ShadowDevice device;
  DeviceLocalStrategy strategy({}, device, ElementType::kFloat32, clock, kTimeout);
  ASSERT_TRUE(strategy.allocate(testing_support::small_layout()).ok());
  ASSERT_TRUE(strategy.join().ok());
  device.hang(true);
  strategy.begin_step({0, 0.1});
  strategy.gradients_complete();
  strategy.step_given();
  EXPECT_EQ(strategy.finish_step().status().code(), Code::kDeadlineExceeded);
  device.hang(false);
}

}  // namespace
}  // namespace syncopate::worker
