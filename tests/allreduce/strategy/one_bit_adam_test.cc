// 1-bit Adam over allreduce: whole gradients up to the freeze, compressed momentum behind it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "allreduce/collective/schedule_collective.h"
#include "allreduce/strategy/allreduce_strategy.h"
#include "common/random.h"
#include "tests/support/cluster.h"
#include "tests/support/direct_group.h"
#include "tests/support/plain_codec.h"
#include "tests/support/plain_one_bit_adam.h"

namespace syncopate::allreduce {
namespace {

using testing_support::connect_direct;
using testing_support::connect_group;
using testing_support::PlainOneBitAdam;
using testing_support::run_ranks;

constexpr int kWarmup = 5;
constexpr double kOneBitRate = 0.01;

AllReduceOptions options_of(const std::string& codec, OptimizerKind kind = OptimizerKind::kAdam) {
  AllReduceOptions options{.optimizer = {.kind = kind, .frozen_after = kWarmup},
                           .bucket_bytes = 64,  // a bucket for each tensor
                           .codec = *parse_codec(codec),
                           .timeout = std::chrono::seconds(60)};
  if (options.codec.kind == CodecKind::kNone) return options;
  options.optimizer.takes_momentum = true;
  options.codec.whole_updates = kWarmup;
  return options;
}

std::vector<float> drawn_gradient(std::size_t size, int worker, int step) {
  Random random(static_cast<std::uint64_t>(worker) + 1, static_cast<std::uint64_t>(step));
  std::vector<float> gradient(size);
  for (float& value : gradient) value = static_cast<float>(random.normal());
  return gradient;
}

// What rank 0 has after each step, and has sent in it. All ranks have the same bits, or the test fails.
struct History {
  std::vector<std::vector<float>> weights;
  std::vector<std::int64_t> bytes_out;
};

using Draw = std::function<std::vector<float>(std::size_t size, int worker, int step)>;

History train(int ranks, const std::string& wire, const AllReduceOptions& options, const ParamLayout& layout, int steps,
              const Draw& draw = drawn_gradient) {
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<std::unique_ptr<Collective>> collectives;
  if (wire == "direct") {
    collectives = connect_direct(ranks);
  } else {
    transports = connect_group("inproc", ranks);
    for (const auto& transport : transports) {
      ScheduleOptions schedule;
      schedule.kind = *parse_schedule_kind(wire);
      collectives.push_back(make_schedule_collective(*transport, schedule));
    }
  }
  const SteadyClock clock;
  std::vector<History> histories(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](int rank) {
    History& history = histories[static_cast<std::size_t>(rank)];
    const auto strategy = make_allreduce_strategy(*collectives[static_cast<std::size_t>(rank)], options, clock);
    const Result<ParamArenas> arenas = strategy->allocate(layout);
    ASSERT_TRUE(arenas.ok());
    const Result<std::vector<Range>> buckets = strategy->join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    for (int step = 0; step < steps; ++step) {
      for (const TensorSpec& tensor : layout.tensors()) {
        std::ranges::copy(draw(tensor.range.size(), rank, step), slice(arenas->gradients, tensor.range).begin());
      }
      strategy->begin_step({.step = step, .learning_rate = kOneBitRate});
      for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) strategy->gradient_ready(bucket);
      const Result<SyncStats> stats = strategy->finish_step();
      ASSERT_TRUE(stats.ok()) << stats.status().message();
      history.weights.emplace_back(arenas->weights.begin(), arenas->weights.end());
      history.bytes_out.push_back(stats->bytes_out);
    }
    EXPECT_TRUE(strategy->leave().ok());
  });
  for (const History& history : histories) EXPECT_EQ(history.weights, histories[0].weights);
  return histories[0];
}

double largest_difference(std::span<const float> a, std::span<const double> b) {
  double largest = 0;
  for (std::size_t i = 0; i < b.size(); ++i) largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

ParamLayout one_tensor() {
  ParamLayout layout;
  layout.add("weight", {10, 64});
  return layout;
}

ParamLayout weights_and_biases() {
  ParamLayout layout;
  layout.add("first.weight", {30, 17});
  layout.add("first.bias", {30});
  layout.add("second.weight", {5, 30});
  return layout;
}

class OneBitAdamOn : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(OneBitAdam, OneBitAdamOn, testing::Values("direct", "ring", "tree"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(OneBitAdamOn, FollowsThePapersAlgorithm) {
  constexpr int kSteps = 30;
  const ParamLayout layout = one_tensor();
  for (const int ranks : {2, 3, 4}) {
    const PlainOneBitAdam plain{
        .workers = ranks, .warmup = kWarmup, .parts = balanced_ranges(layout.size(), static_cast<std::size_t>(ranks))};
    const auto expected = plain.descend(layout.size(), kSteps, kOneBitRate, [&](int worker, int step) {
      return drawn_gradient(layout.size(), worker, step);
    });
    const History history = train(ranks, GetParam(), options_of("sign"), layout, kSteps);
    for (std::size_t step = 0; step < kSteps; ++step) {
      ASSERT_LT(largest_difference(history.weights[step], expected[step]), 1e-5) << ranks << " ranks, step " << step;
    }
  }
}

TEST(OneBitAdam, CountsNoPaddingBehindSmallTensors) {
  constexpr int kSteps = 20;
  const ParamLayout layout = testing_support::layout_of_small_tensors();
  const auto gradient_of = [&](int worker, int step) {
    std::vector<float> gradient(layout.size());
    for (const TensorSpec& tensor : layout.tensors()) {
      std::ranges::copy(drawn_gradient(tensor.range.size(), worker, step),
                        slice(std::span(gradient), tensor.range).begin());
    }
    return gradient;
  };
  // Each tensor is a bucket, and has one owner but for the last, whose 17th element is another rank's.
  const PlainOneBitAdam plain{
      .workers = 2, .warmup = kWarmup, .parts = {{0, 1}, {16, 19}, {32, 42}, {48, 64}, {64, 65}}};
  const auto expected = plain.descend(layout.size(), kSteps, kOneBitRate, gradient_of);
  const History history = train(2, "direct", options_of("sign"), layout, kSteps);
  for (std::size_t step = 0; step < kSteps; ++step) {
    ASSERT_LT(largest_difference(history.weights[step], expected[step]), 1e-5) << "step " << step;
  }
}

TEST(OneBitAdam, IsUncompressedAdamToTheBitUntilTheVarianceIsFrozen) {
  for (const char* codec : {"sign", "topk:0.1", "randomk:0.1", "int8", "fp16", "powersgd:2"}) {
    const History plain = train(2, "ring", options_of("none"), weights_and_biases(), kWarmup + 2);
    const History compressed = train(2, "ring", options_of(codec), weights_and_biases(), kWarmup + 2);
    for (std::size_t step = 0; step < kWarmup; ++step) {
      EXPECT_EQ(compressed.weights[step], plain.weights[step]) << codec << ", step " << step;
      EXPECT_EQ(compressed.bytes_out[step], plain.bytes_out[step]) << codec << ", step " << step;
    }
    for (std::size_t step = kWarmup; step < kWarmup + 2; ++step) {
      EXPECT_NE(compressed.weights[step], plain.weights[step]) << codec << ", step " << step;
      EXPECT_LT(compressed.bytes_out[step], plain.bytes_out[step]) << codec << ", step " << step;
    }
  }
}

// A codec that sends all leaves nothing but rounding between momentum and gradients on the way.
TEST(OneBitAdam, IsAdamWithAFrozenVarianceWhereNothingIsLost) {
  for (const OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    AllReduceOptions plain = options_of("none", kind), whole = options_of("topk:1", kind);
    plain.optimizer.weight_decay = whole.optimizer.weight_decay = 0.1f;
    const History expected = train(3, "ring", plain, weights_and_biases(), 25);
    const History history = train(3, "ring", whole, weights_and_biases(), 25);
    for (std::size_t i = 0; i < expected.weights.back().size(); ++i) {
      ASSERT_NEAR(history.weights.back()[i], expected.weights.back()[i], 1e-5) << i;
    }
  }
}

// A third of the elements has had no gradient when the variance is frozen, and another third one that is smaller by
// far: what the codec makes of them stays small, and gradients that arrive later move them.
TEST(OneBitAdam, ThrowsNoWeightFarAwayWhoseVarianceIsSmall) {
  const auto draw = [](std::size_t size, int worker, int step) {
    std::vector<float> gradient = drawn_gradient(size, worker, step);
    for (std::size_t i = 0; i < size && step < kWarmup + 10; ++i) {
      if (i % 3 == 0) gradient[i] = 0;
      if (i % 3 == 1) gradient[i] *= 1e-12f;
    }
    return gradient;
  };
  for (const char* codec : {"sign", "topk:0.1", "randomk:0.1", "int8", "powersgd:2"}) {
    const std::vector<float> weights = train(2, "ring", options_of(codec), one_tensor(), 40, draw).weights.back();
    for (std::size_t i = 0; i < weights.size(); ++i) {
      ASSERT_LT(std::abs(weights[i]), 10) << codec << ", " << i;
      if (std::string(codec) == "sign") ASSERT_NE(weights[i], 0) << i;
    }
  }
}

// A tensor without any gradient gives nothing to go by.
TEST(OneBitAdam, LeavesATensorAloneThatHasHadNoGradient) {
  const auto draw = [](std::size_t size, int worker, int step) {
    if (size == 30 && step < kWarmup) return std::vector<float>(size);
    return drawn_gradient(size, worker, step);
  };
  const ParamLayout layout = weights_and_biases();
  const Range bias = layout.tensors()[1].range;
  const std::vector<float> weights = train(2, "ring", options_of("sign"), layout, 20, draw).weights.back();
  EXPECT_THAT(slice(std::span<const float>(weights), bias), testing::Each(0.0f));
  EXPECT_THAT(slice(std::span<const float>(weights), layout.tensors()[0].range), testing::Each(testing::Ne(0.0f)));
}

TEST(OneBitAdam, RefusesRanksWithAnotherWarmup) {
  auto group = connect_group("inproc", 2);
  const SteadyClock clock;
  run_ranks(2, [&](int rank) {
    AllReduceOptions options = options_of("sign");
    options.optimizer.frozen_after += rank;
    options.codec.whole_updates += rank;
    const auto ring = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
    const auto strategy = make_allreduce_strategy(*ring, options, clock);
    ASSERT_TRUE(strategy->allocate(one_tensor()).ok());
    EXPECT_EQ(strategy->join().status().code(), Code::kInvalidArgument);
  });
}

}  // namespace
}  // namespace syncopate::allreduce
