// DeviceReplica with 16-bit numbers: weights that updates are added to and those that a model reads, the scale of the
// loss, and steps that are skipped.
#include "common/device/device_replica.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/codec/half_floats.h"
#include "common/optimizer/optimizer.h"
#include "common/random.h"
#include "tests/common/cuda/gpu_test.h"

namespace syncopate {
namespace {

constexpr std::size_t kWeights = 1008;  // no padding
constexpr float kInfinity = std::numeric_limits<float>::infinity();
const OptimizerConfig kAdam{.kind = OptimizerKind::kAdam};

std::vector<float> random_values(std::uint64_t seed, double scale) {
  Random random(seed);
  std::vector<float> values(kWeights);
  for (float& value : values) value = static_cast<float>(random.uniform(-scale, scale));
  return values;
}

class DeviceReplicas : public testing_support::GpuTest {
 protected:
  DeviceReplica make(ElementType element, const TrainingState* state = nullptr) {
    DeviceReplica replica(kAdam, device(), element);
    EXPECT_TRUE(replica.allocate(layout()).ok());
    if (state != nullptr) EXPECT_TRUE(replica.restore(*state, soon()).ok());
    EXPECT_TRUE(replica.begin(soon()).ok());
    return replica;
  }
  static ParamLayout layout() {
    ParamLayout layout;
    layout.add("weights", {static_cast<std::int64_t>(kWeights)});
    return layout;
  }

  // What is left of values in 16 bits, as floats.
  static std::vector<float> rounded(ElementType element, const std::vector<float>& values) {
    std::vector<std::byte> encoded(2 * values.size());
    std::vector<float> left(values.size());
    if (element == ElementType::kBfloat16) {
      codec::encode_bf16(values, encoded), codec::decode_bf16(encoded, codec::DecodeMode::kReplace, left);
    } else {
      codec::encode_fp16(values, encoded), codec::decode_fp16(encoded, codec::DecodeMode::kReplace, left);
    }
    return left;
  }
  std::vector<float> floats_of(ConstTensorSpan tensor) {
    const std::span<float> floats = upload(std::vector<float>(tensor.size()));
    compute().convert(tensor, floats);
    return download(std::span<const float>(floats));
  }

  // Gives a step whose gradients are these numbers times the loss scale, and does not wait for its end.
  void give(DeviceReplica& replica, std::int64_t step, const std::vector<float>& gradients) {
    replica.begin_step({step, 0.01});
    std::vector<float> scaled = gradients;
    if (replica.is_loss_scaled()) {
      const float scale = download(replica.arenas().loss_scale)[0];
      for (float& value : scaled) value *= scale;
    }
    compute().convert(upload(scaled), replica.arenas().rounded_gradients);
    replica.begin_updates();
    replica.update({0, kWeights});
    replica.end_updates();
  }
  SyncStats finish_step(DeviceReplica& replica) {
    EXPECT_TRUE(finish(compute()).ok());
    SyncStats stats;
    replica.finish_step(stats);
    return stats;
  }
};

TEST_F(DeviceReplicas, AddToFloatsWhatTheirModelsReadInSixteenBits) {
  for (const ElementType element : {ElementType::kBfloat16, ElementType::kFloat16}) {
    DeviceReplica replica = make(element);
    std::vector<float> expected(kWeights);
    OptimizerState state(kAdam, kWeights);
    for (std::int64_t step = 0; step < 5; ++step) {
      const std::vector<float> gradients = rounded(element, random_values(static_cast<std::uint64_t>(step), 0.5));
      give(replica, step, gradients);
      const SyncStats stats = finish_step(replica);
      EXPECT_EQ(stats.skipped, 0);
      EXPECT_EQ(stats.loss_scale, element == ElementType::kFloat16 ? LossScale::kFirst : 0);
      Optimizer(kAdam).apply(expected, gradients, state, 0, {0.01, 1, step + 1});
      EXPECT_EQ(download(std::span<const float>(replica.arenas().weights)), expected);
      EXPECT_EQ(floats_of(replica.arenas().rounded_weights), rounded(element, expected));
    }
  }
}

// Beside steps that are not finished yet: what the host does not know, the device does.
TEST_F(DeviceReplicas, SkipAStepWhoseGradientsOverflowAndCountOnlyUpdates) {
  DeviceReplica replica = make(ElementType::kFloat16);
  std::vector<float> expected(kWeights);
  OptimizerState state(kAdam, kWeights);
  std::int64_t updates = 0, skipped = 0;
  std::int64_t scale = static_cast<std::int64_t>(LossScale::kFirst);
  for (std::int64_t step = 0; step < 12; ++step) {
    const bool overflows = step == 0 || step == 5 || step == 6;
    std::vector<float> gradients = rounded(ElementType::kFloat16, random_values(static_cast<std::uint64_t>(step), 0.5));
    if (overflows) gradients[kWeights - 1] = step == 5 ? std::nanf("") : kInfinity;
    give(replica, step, gradients);
    if (!overflows) Optimizer(kAdam).apply(expected, gradients, state, 0, {0.01, 1, ++updates});
    if (step == 0) continue;
    const SyncStats stats = finish_step(replica);  // of the step before
    EXPECT_EQ(stats.loss_scale, scale) << step;
    skipped += stats.skipped;
    if (stats.skipped > 0) scale /= 2;
  }
  finish_step(replica);
  EXPECT_EQ(skipped, 3);
  EXPECT_EQ(download(replica.arenas().loss_scale)[0], LossScale::kFirst / 8);
  EXPECT_EQ(download(std::span<const float>(replica.arenas().weights)), expected);
  EXPECT_EQ(floats_of(replica.arenas().rounded_weights), rounded(ElementType::kFloat16, expected));
}

TEST_F(DeviceReplicas, GoOnWithTheLossScaleThatWasSaved) {
  const std::vector<float> gradients = rounded(ElementType::kFloat16, random_values(1, 0.5));
  DeviceReplica before = make(ElementType::kFloat16);
  give(before, 0, std::vector<float>(kWeights, kInfinity));
  finish_step(before);
  give(before, 1, gradients);
  finish_step(before);
  TrainingState state;
  ASSERT_TRUE(before.save(state, soon()).ok());
  DeviceReplica after = make(ElementType::kFloat16, &state);
  for (DeviceReplica* replica : {&before, &after}) {
    give(*replica, 2, gradients);
    EXPECT_EQ(finish_step(*replica).loss_scale, LossScale::kFirst / 2);
  }
  EXPECT_EQ(download(std::span<const float>(after.arenas().weights)),
            download(std::span<const float>(before.arenas().weights)));

  for (const std::vector<std::int64_t>& wrong : std::vector<std::vector<std::int64_t>>{
           {1}, {0, 0, 0}, {3, 0, 0}, {-2, 0, 0}, {1 << 25, 0, 0}, {1, -1, 0}, {1, 2000, 0}, {1, 0, -1}}) {
    state.counts["loss_scale"] = wrong;
    DeviceReplica replica(kAdam, device(), ElementType::kFloat16);
    ASSERT_TRUE(replica.allocate(layout()).ok());
    EXPECT_EQ(replica.restore(state, soon()).code(), Code::kDataLoss);
  }
}

TEST(LossScale, GrowsAfterManyGoodStepsAndStaysWithinItsBounds) {
  LossScale scale;
  for (int step = 0; step < LossScale::kGrowthSteps; ++step) {
    EXPECT_EQ(scale.factor, LossScale::kFirst);
    scale.end_step();
  }
  EXPECT_EQ(scale.factor, 2 * LossScale::kFirst);
  for (int step = 0; step < 100; ++step) {
    scale.overflowed = 1;
    scale.end_step();
  }
  EXPECT_EQ(scale.factor, LossScale::kLeast);
  EXPECT_EQ(scale.skipped_steps, 100);
  for (int step = 0; step < 30 * LossScale::kGrowthSteps; ++step) scale.end_step();
  EXPECT_EQ(scale.factor, LossScale::kMost);
}

}  // namespace
}  // namespace syncopate
