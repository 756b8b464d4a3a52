// Stream::update against Optimizer::apply: the same bits.
#include <bit>

#include "common/optimizer/optimizer.h"
#include "common/optimizer/update_constants.h"
#include "common/random.h"
#include "tests/common/cuda/gpu_test.h"

namespace syncopate {
namespace {

struct Rule {
  const char* name;
  OptimizerConfig config;
};

const Rule kRules[] = {
    {"sgd", {.kind = OptimizerKind::kSgd}},
    {"sgd with decay", {.kind = OptimizerKind::kSgd, .weight_decay = 0.013f}},
    {"momentum", {.kind = OptimizerKind::kMomentum}},
    {"momentum with decay", {.kind = OptimizerKind::kMomentum, .momentum = 0.87f, .weight_decay = 0.013f}},
    {"nesterov", {.kind = OptimizerKind::kMomentum, .nesterov = true}},
    {"nesterov with decay", {.kind = OptimizerKind::kMomentum, .nesterov = true, .weight_decay = 0.013f}},
    {"adam", {.kind = OptimizerKind::kAdam}},
    {"adam with decay", {.kind = OptimizerKind::kAdam, .beta1 = 0.8f, .beta2 = 0.97f, .weight_decay = 0.013f}},
    {"adagrad", {.kind = OptimizerKind::kAdagrad, .weight_decay = 0.013f, .initial_accumulator = 0.1f}},
    {"ftrl", {.kind = OptimizerKind::kFtrl, .l1 = 0.01f, .l2 = 0.1f}},
    {"adamw", {.kind = OptimizerKind::kAdamW}},
    {"momentum with dampening", {.kind = OptimizerKind::kMomentum, .dampening = 0.3f, .maximize = true}},
    {"amsgrad with decay", {.kind = OptimizerKind::kAdam, .amsgrad = true, .weight_decay = 0.01f}},
    {"adagrad that slows down", {.kind = OptimizerKind::kAdagrad, .lr_decay = 0.1f}},
    {"rmsprop", {.kind = OptimizerKind::kRmsprop, .momentum = 0, .weight_decay = 0.01f}},
    {"rmsprop with momentum", {.kind = OptimizerKind::kRmsprop, .weight_decay = 0.01f}},
    {"centered rmsprop", {.kind = OptimizerKind::kRmsprop, .momentum = 0, .centered = true}},
    {"centered rmsprop with momentum", {.kind = OptimizerKind::kRmsprop, .centered = true, .weight_decay = 0.01f}},
    {"adadelta", {.kind = OptimizerKind::kAdadelta, .weight_decay = 0.01f}},
    {"adamax", {.kind = OptimizerKind::kAdamax, .weight_decay = 0.01f}},
    {"radam", {.kind = OptimizerKind::kRadam, .weight_decay = 0.01f}},
    {"adamw with decay", {.kind = OptimizerKind::kAdamW, .epsilon = 1e-6f, .weight_decay = 0.013f}},
};

// Values of all sizes, zeros among them. Where there are few, also some whose squares or shares are too small for a
// normal number; where there are many, one would sooner or later lie so close below the smallest normal number that it
// rounds to it, and whether such a one is flushed is for each processor to say.
std::vector<float> values(std::size_t count, std::uint64_t seed) {
  constexpr float kScales[] = {1, 1e-3f, 1e-10f, 1e8f, 0, 1e-19f, 1e-30f, 3e-38f};
  const std::size_t scales = count < 5000 ? 8 : 5;
  Random random(seed);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(random.normal()) * kScales[i % scales];
  return values;
}

std::size_t bits_that_differ(std::span<const float> a, std::span<const float> b) {
  std::size_t count = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    count += std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]);
  }
  return count;
}

UpdateStep step_number(std::int64_t number) {
  return {.learning_rate = 0.01f / static_cast<float>(number), .gradient_scale = 1.0f / 3, .number = number};
}

class CudaUpdate : public testing_support::GpuTest {
 protected:
  DeviceOptimizerState state(const OptimizerConfig& rule, std::size_t elements) {
    return *allocate_state(device(), rule, elements);
  }

  // On the device until the next call, behind all work so far.
  const update_rule::UpdateConstants* constants(const OptimizerConfig& rule, const UpdateStep& step) {
    const update_rule::UpdateConstants host = update_rule::constants_of(rule, step);
    EXPECT_TRUE(finish(compute()).ok());
    if (constants_.empty()) constants_ = *device().allocate(sizeof(host));
    compute().copy_to_device(std::as_bytes(std::span(&host, 1)), constants_);
    EXPECT_TRUE(finish(compute()).ok());
    return reinterpret_cast<const update_rule::UpdateConstants*>(constants_.data());
  }

  void upload_to(std::span<float> memory, const std::vector<float>& host) {
    compute().copy_to_device(std::as_bytes(std::span(host)), std::as_writable_bytes(memory));
    ASSERT_TRUE(finish(compute()).ok());
  }

  std::span<std::byte> constants_;
};

TEST_F(CudaUpdate, GivesTheSameBitsAsTheOptimizer) {
  // One alone; parts of a warp and of a block; more than all threads of a launch, where a rule is as in the others.
  for (std::size_t size : {std::size_t{1}, std::size_t{31}, std::size_t{1003}, std::size_t{4096} * 256 + 77}) {
    const bool is_large = size > 2000;
    const std::int64_t updates = is_large ? 2 : 6, rounds = is_large ? 1 : 1000;
    std::vector<std::vector<float>> drawn;  // weights, and the gradient of each update
    for (std::int64_t number = 0; number <= updates; ++number)
      drawn.push_back(values(size, 1 + static_cast<std::uint64_t>(number)));
    for (const auto& [name, rule] : kRules) {
      SCOPED_TRACE(testing::Message() << name << ", " << size << " weights");
      std::vector<float> expected = drawn[0];
      OptimizerState expected_state(rule, size);
      const std::span<float> weights = upload(expected), gradient = upload(expected);
      const DeviceOptimizerState remembered = state(rule, size);
      for (std::int64_t number = 1; number <= updates; ++number) {
        const std::vector<float>& host_gradient = drawn[static_cast<std::size_t>(number)];
        Optimizer(rule).apply(expected, host_gradient, expected_state, 0, step_number(number));
        upload_to(gradient, host_gradient);
        compute().update(rule, {weights, gradient, remembered, constants(rule, step_number(number))});
        const std::vector<float> updated = download(std::span<const float>(weights));
        ASSERT_EQ(bits_that_differ(updated, expected), 0u) << "after update " << number;
      }
      // Gradients of zero: what is remembered decays, down to where denormals are flushed.
      const std::vector<float> nothing(size);
      upload_to(gradient, nothing);
      for (std::int64_t number = updates + 1; number <= updates + rounds; ++number) {
        Optimizer(rule).apply(expected, nothing, expected_state, 0, step_number(number));
        compute().update(rule, {weights, gradient, remembered, constants(rule, step_number(number))});
      }
      ASSERT_EQ(bits_that_differ(download(std::span<const float>(weights)), expected), 0u) << "after decay";
    }
  }
}

TEST_F(CudaUpdate, UpdatesARangeAndNothingElse) {
  constexpr std::size_t kSize = 3000, kBegin = 1001, kLength = 777;
  for (const auto& [name, rule] : kRules) {
    SCOPED_TRACE(name);
    std::vector<float> expected = values(kSize, 1);
    const std::vector<float> host_gradient = values(kSize, 2);
    OptimizerState expected_state(rule, kSize);
    const std::span<float> weights = upload(expected), gradient = upload(host_gradient);
    const DeviceOptimizerState whole = state(rule, kSize);
    const auto part = [](std::span<float> all) { return all.empty() ? all : all.subspan(kBegin, kLength); };
    for (std::int64_t number = 1; number <= 3; ++number) {
      Optimizer(rule).apply(part(expected), std::span(host_gradient).subspan(kBegin, kLength), expected_state, kBegin,
                            step_number(number));
      compute().update(rule, {part(weights),
                              part(gradient),
                              {{part(whole.memories[0]), part(whole.memories[1]), part(whole.memories[2])}},
                              constants(rule, step_number(number))});
    }
    EXPECT_EQ(bits_that_differ(download(std::span<const float>(weights)), expected), 0u);
  }
}

TEST_F(CudaUpdate, IsDoneInTheOrderOfItsStream) {
  const OptimizerConfig rule{.kind = OptimizerKind::kSgd};
  const std::unique_ptr<Stream> stream = make_stream();
  const std::span<float> weights = upload(std::vector<float>(10'000, 1.0f));
  const std::span<float> gradient = upload(std::vector<float>(10'000, 1.0f));
  const update_rule::UpdateConstants* const of_step = constants(rule, {.learning_rate = 0.25f});
  gate_.shut(*stream);
  for (int round = 0; round < 3; ++round) stream->update(rule, {weights, gradient, {}, of_step});
  EXPECT_EQ(download(std::span<const float>(weights)), std::vector<float>(10'000, 1.0f));
  gate_.open();
  ASSERT_TRUE(finish(*stream).ok());
  EXPECT_EQ(download(std::span<const float>(weights)), std::vector<float>(10'000, 0.25f));
}

}  // namespace
}  // namespace syncopate
