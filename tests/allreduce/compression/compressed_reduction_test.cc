// Compressed sums of ranks that are threads, over a ring and in shared memory.
#include "allreduce/compression/compressed_reduction.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "allreduce/collective/schedule_collective.h"
#include "allreduce/strategy/allreduce_strategy.h"
#include "common/codec/codec.h"
#include "common/os/aligned_buffer.h"
#include "common/random.h"
#include "tests/support/cluster.h"
#include "tests/support/direct_group.h"
#include "tests/support/plain_gradient_compression.h"

namespace syncopate::allreduce {
namespace {

using testing_support::connect_direct;
using testing_support::connect_group;
using testing_support::run_ranks;
using testing_support::soon;

// Matrices and vectors, with padding behind most of them.
ParamLayout layout_of_model() {
  ParamLayout layout;
  layout.add("first.weight", {60, 33});
  layout.add("first.bias", {60});
  layout.add("second.weight", {20, 3, 7});
  layout.add("second.bias", {20});
  layout.add("third.weight", {5, 4});
  return layout;
}

// Two buckets of whole tensors, in backward order.
std::vector<Range> buckets_of(const ParamLayout& layout) {
  const std::size_t middle = layout.tensors()[2].range.begin;
  return {{middle, layout.size()}, {0, middle}};
}

// What rank `rank` has to give in step `step`: zeros in the padding.
void draw_gradients(const ParamLayout& layout, int rank, std::int64_t step, std::span<float> gradients) {
  Random random(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step));
  for (const TensorSpec& tensor : layout.tensors()) {
    for (float& value : slice(gradients, tensor.range)) value = static_cast<float>(random.normal());
  }
}

using Gradients = std::vector<float>;
using Draw = std::function<void(const ParamLayout&, int rank, std::int64_t step, std::span<float>)>;

// What every rank has after each step, and the payload that it has sent in all.
struct Outcome {
  std::vector<std::vector<Gradients>> sums;  // by rank and step
  std::vector<std::int64_t> bytes_out;       // by rank
};

Outcome reduce(const CodecConfig& codec, const std::string& wire, int ranks, int steps, const Draw& draw) {
  const ParamLayout layout = layout_of_model();
  const SteadyClock clock;
  Outcome outcome{std::vector<std::vector<Gradients>>(static_cast<std::size_t>(ranks)),
                  std::vector<std::int64_t>(static_cast<std::size_t>(ranks))};
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<std::unique_ptr<Collective>> collectives;
  if (wire == "direct") {
    collectives = connect_direct(ranks);
  } else {
    transports = connect_group(wire, ranks);
    for (const auto& transport : transports) collectives.push_back(make_schedule_collective(*transport));
  }
  run_ranks(ranks, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    Collective& collective = *collectives[r];
    const auto made = make_compressed_reduction(codec, layout, 7, collective, clock);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const std::int64_t before = collective.counters().payload_bytes_out;
    AlignedBuffer gradients(layout.size());
    for (int step = 0; step < steps; ++step) {
      draw(layout, rank, step, gradients.span());
      for (const Range& bucket : buckets_of(layout)) {
        const Result<Duration> spent =
            (*made)->reduce(bucket, slice(gradients.span(), bucket), {.number = step}, soon());
        ASSERT_TRUE(spent.ok()) << spent.status().message();
        EXPECT_GT(*spent, Duration::zero());
      }
      outcome.sums[r].emplace_back(gradients.span().begin(), gradients.span().end());
    }
    outcome.bytes_out[r] = collective.counters().payload_bytes_out - before;
    EXPECT_TRUE(collective.barrier(soon()).ok());
  });
  return outcome;
}

Outcome reduce(const std::string& codec, const std::string& wire, int ranks, int steps, const Draw& draw) {
  return reduce(*parse_codec(codec), wire, ranks, steps, draw);
}

Gradients exact_sum(int ranks, std::int64_t step, const Draw& draw) {
  const ParamLayout layout = layout_of_model();
  Gradients sum(layout.size()), one(layout.size());
  for (int rank = 0; rank < ranks; ++rank) {
    draw(layout, rank, step, one);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  }
  return sum;
}

double relative_error(const Gradients& sum, const Gradients& expected) {
  double error = 0, length = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    error += std::pow(static_cast<double>(sum[i]) - static_cast<double>(expected[i]), 2);
    length += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(error / length);
}

class EveryCodecOnWires : public testing::TestWithParam<std::tuple<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(CompressedReduction, EveryCodecOnWires,
                         testing::Combine(testing::Values("fp16", "bf16", "int8", "topk:0.05", "topk2bit:0.05",
                                                          "randomk:0.05", "sign", "powersgd:2"),
                                          testing::Values("inproc", "direct")),
                         [](const auto& tested) {
                           const std::string codec = std::get<0>(tested.param);
                           return codec.substr(0, codec.find(':')) + "_" + std::get<1>(tested.param);
                         });

TEST_P(EveryCodecOnWires, LeavesTheSameBitsOnEveryRankAndZerosInThePadding) {
  const auto& [codec, wire] = GetParam();
  const ParamLayout layout = layout_of_model();
  for (const int ranks : {1, 2, 3, 5}) {
    const Outcome outcome = reduce(codec, wire, ranks, 3, draw_gradients);
    for (int rank = 1; rank < ranks; ++rank) {
      for (std::size_t step = 0; step < 3; ++step) {
        const Gradients& own = outcome.sums[static_cast<std::size_t>(rank)][step];
        ASSERT_EQ(std::memcmp(own.data(), outcome.sums[0][step].data(), own.size() * sizeof(float)), 0)
            << ranks << " ranks, rank " << rank << ", step " << step;
      }
    }
    Gradients tensors_erased = outcome.sums[0].back();
    for (const TensorSpec& tensor : layout.tensors()) {
      std::ranges::fill(slice(std::span(tensors_erased), tensor.range), 0.0f);
    }
    EXPECT_EQ(tensors_erased, Gradients(layout.size())) << ranks << " ranks";
  }
}

// What is left out of one step's sum must come in a later one: the means over many steps are those of what was given.
TEST_P(EveryCodecOnWires, GivesAllOfEveryGradientInTheEnd) {
  const auto& [codec, wire] = GetParam();
  constexpr int kRanks = 3, kSteps = 200;
  const Draw always_the_same = [](const ParamLayout& layout, int rank, std::int64_t, std::span<float> gradients) {
    draw_gradients(layout, rank, 0, gradients);
  };
  const Outcome outcome = reduce(codec, wire, kRanks, kSteps, always_the_same);
  Gradients mean(layout_of_model().size());
  for (const Gradients& sum : outcome.sums[0]) {
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += sum[i] / kSteps;
  }
  // int8 alone repeats its error in each step.
  const double bound = std::string(codec) == "int8" ? 0.02 : 0.15;
  EXPECT_LT(relative_error(mean, exact_sum(kRanks, 0, always_the_same)), bound);
}

TEST_P(EveryCodecOnWires, ShowsThatGradientsOfAnyRankHaveDiverged) {
  const auto& [codec, wire] = GetParam();
  const Draw diverges = [](const ParamLayout& layout, int rank, std::int64_t step, std::span<float> gradients) {
    draw_gradients(layout, rank, step, gradients);
    const Range first = layout.tensors().front().range;
    if (rank == 1) std::ranges::fill(slice(gradients, first), std::numeric_limits<float>::quiet_NaN());
  };
  const Outcome outcome = reduce(codec, wire, 2, 1, diverges);
  for (const auto& sums : outcome.sums) {
    EXPECT_TRUE(std::ranges::any_of(sums[0], [](float value) { return std::isnan(value); }));
  }
}

TEST(CompressedReduction, IsExactForWhatTheFormatHas) {
  const Draw small_integers = [](const ParamLayout& layout, int rank, std::int64_t step, std::span<float> gradients) {
    Random random(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step));
    for (const TensorSpec& tensor : layout.tensors()) {
      for (float& value : slice(gradients, tensor.range)) value = static_cast<float>(random.below(16));
    }
  };
  for (const char* codec : {"fp16", "bf16", "topk:1", "randomk:1"}) {
    EXPECT_EQ(reduce(codec, "inproc", 3, 1, small_integers).sums[0][0], exact_sum(3, 0, small_integers)) << codec;
  }
}

// Neither of two ranks' matrices has rank 1, but their sum does: PowerSGD approximates the sum, not what each rank has.
TEST(CompressedReduction, SumsExactlyByPowerSgdWhereTheSumHasItsRank) {
  const Draw parts = [](const ParamLayout& layout, int rank, std::int64_t, std::span<float> gradients) {
    Random random(5);  // the same on both ranks, and with opposite signs
    for (const TensorSpec& tensor : layout.tensors()) {
      const std::span<float> values = slice(gradients, tensor.range);
      const std::size_t columns = values.size() / static_cast<std::size_t>(tensor.shape[0]);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto of_rank_1 = static_cast<float>((1 + i / columns % 3) * (1 + i % columns % 5));
        const auto cancels = static_cast<float>(random.below(16));
        values[i] = of_rank_1 + (rank == 0 ? cancels : -cancels);
      }
    }
  };
  const Outcome outcome = reduce("powersgd:1", "inproc", 2, 1, parts);
  EXPECT_LT(relative_error(outcome.sums[0][0], exact_sum(2, 0, parts)), 1e-5);
}

TEST(CompressedReduction, RefusesWhatIsNoEncodingAndSaysWhoseItIs) {
  const ParamLayout layout = layout_of_model();
  const SteadyClock clock;
  const auto group = connect_group("inproc", 2);
  run_ranks(2, [&](int rank) {
    const auto collective = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
    const auto made =
        make_compressed_reduction(*parse_codec(rank == 0 ? "int8" : "sign"), layout, 7, *collective, clock);
    ASSERT_TRUE(made.ok());
    AlignedBuffer gradients(layout.size());
    const Status status = (*made)->reduce({0, layout.size()}, gradients.span(), {}, soon()).status();
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_THAT(status.message(), testing::StartsWith(fmt::format("gradients of rank {}: ", 1 - rank)));
  });
}

TEST(CompressedReduction, RoundsByChancesThatDifferFromRankToRankAndStepToStep) {
  CodecConfig stochastic = *parse_codec("int8");
  stochastic.rounding = Int8Rounding::kStochastic;
  constexpr int kRanks = 3, kSteps = 400;
  const Draw always_the_same = [](const ParamLayout& layout, int, std::int64_t, std::span<float> gradients) {
    draw_gradients(layout, 0, 0, gradients);
  };
  const auto distance = [&](const CodecConfig& codec) {
    const Outcome outcome = reduce(codec, "inproc", kRanks, kSteps, always_the_same);
    EXPECT_EQ(outcome.sums[1].back(), outcome.sums[0].back());
    Gradients mean(layout_of_model().size());
    for (const Gradients& sum : outcome.sums[0]) {
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += sum[i] / kSteps;
    }
    return relative_error(mean, exact_sum(kRanks, 0, always_the_same));
  };
  // To the nearest, all ranks make the same error in every step; by chance, it averages out.
  EXPECT_LT(distance(stochastic), distance(*parse_codec("int8")) / 5);
  const auto of_one_step = [&] { return reduce(stochastic, "inproc", kRanks, 1, draw_gradients).sums; };
  EXPECT_EQ(of_one_step(), of_one_step()) << "drawn from the seed";
}

// Against plain vectors, bit by bit: velocities and residuals of ranks, a warm-up, plain sgd of what arrives.
TEST(CompressedReduction, CorrectsMomentumAsThePaperSays) {
  constexpr int kRanks = 2, kSteps = 8, kStepsAnEpoch = 3;
  constexpr float kRate = 0.25f;
  const ParamLayout layout = layout_of_model();
  for (const CodecConfig& codec : testing_support::momentum_codecs()) {
    const auto group = connect_group("inproc", kRanks);
    const SteadyClock clock;
    run_ranks(kRanks, [&](int rank) {
      const auto collective = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
      const auto strategy = make_allreduce_strategy(
          *collective, {.optimizer = {.kind = OptimizerKind::kSgd}, .bucket_bytes = 4096, .codec = codec}, clock);
      const ParamArenas arenas = *strategy->allocate(layout);
      const Result<std::vector<Range>> buckets = strategy->join();
      ASSERT_TRUE(buckets.ok());
      const auto expected =
          testing_support::plain_descent(codec, layout, *buckets, kRanks, kSteps, kStepsAnEpoch, kRate);
      for (int i = 0; i < kSteps; ++i) {
        testing_support::draw_small_integers(layout, rank, i, arenas.gradients);
        strategy->begin_step({.step = i, .learning_rate = kRate, .epoch = i / kStepsAnEpoch});
        for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) strategy->gradient_ready(bucket);
        ASSERT_TRUE(strategy->finish_step().ok());
        ASSERT_TRUE(std::ranges::equal(arenas.weights, expected[static_cast<std::size_t>(i)])) << i;
      }
      EXPECT_TRUE(strategy->leave().ok());
    });
  }
}

TEST(CompressedReduction, SendsTheBytesThatTheCodecSays) {
  constexpr int kRanks = 3;
  const ParamLayout layout = layout_of_model();
  for (const char* name : {"fp16", "bf16", "int8", "sign"}) {
    const Codec codec(*parse_codec(name), tensor_ranges(layout));
    const Outcome outcome = reduce(name, "inproc", kRanks, 1, draw_gradients);
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      std::size_t expected = 0;
      for (const Range& bucket : buckets_of(layout)) {
        const std::vector<Range> parts = balanced_ranges(bucket.size(), kRanks);
        for (std::size_t owner = 0; owner < kRanks; ++owner) {
          if (owner != rank) expected += codec.encoded_size(parts[owner].size(), bucket.begin + parts[owner].begin);
        }
        expected += (kRanks - 1) * codec.encoded_size(parts[rank].size(), bucket.begin + parts[rank].begin);
      }
      EXPECT_EQ(outcome.bytes_out[rank], static_cast<std::int64_t>(expected)) << name << ", rank " << rank;
    }
  }
  const Codec top_k(*parse_codec("topk:0.05"), tensor_ranges(layout));
  std::size_t gathered = 0;
  for (const Range& bucket : buckets_of(layout)) {
    gathered += (kRanks - 1) * top_k.encoded_size(bucket.size(), bucket.begin);
  }
  EXPECT_THAT(reduce("topk:0.05", "inproc", kRanks, 1, draw_gradients).bytes_out,
              testing::Each(static_cast<std::int64_t>(gathered)));
}

}  // namespace
}  // namespace syncopate::allreduce
