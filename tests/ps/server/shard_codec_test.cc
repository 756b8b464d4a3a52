#include "ps/server/shard_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "common/random.h"
#include "ps/client/worker_codec.h"
#include "ps/transport_memory.h"
#include "tests/ps/job/codec_names.h"
#include "tests/support/cluster.h"

namespace syncopate::ps {
namespace {

constexpr std::size_t kFloats = 3000;  // some chunks of codecs, the last one not full

std::vector<float> drawn(std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(kFloats);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

// Root of the mean square.
double distance(std::span<const float> a, std::span<const float> b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(squares / static_cast<double>(a.size()));
}

// A worker and a shard with one chunk.
class ShardCodecTest : public testing::TestWithParam<const char*> {
 protected:
  ShardCodecTest() {
    EXPECT_TRUE(worker_.allocate(*group_[0], std::vector<Range>{{0, kFloats}}, kFloats, 1).ok());
    shard_.sent_in_full(0, 0, weights_);
  }

  PushName next() { return {.worker = 0, .shard = 1, .chunk = 0, .clock = ++clock_}; }
  std::span<const float> pushed(std::span<const float> gradient) {
    const PushName push = next();
    const auto decoded = shard_.decode(push, worker_.encode(push, 0, 0, gradient), kFloats);
    EXPECT_TRUE(decoded.ok()) << decoded.status().message();
    return *decoded;
  }
  void answer(std::span<const float> weights) {
    const PushName push = next();
    const auto answer = shard_.encode(push, weights);
    ASSERT_TRUE(answer.ok());
    ASSERT_TRUE(worker_.apply_answer(push, answer->payload, weights_).ok());
  }

  const Compression compression_ = compression_of(GetParam());
  SteadyClock clock_source_;
  std::vector<std::unique_ptr<Transport>> group_ = testing_support::connect_group("inproc", 1);
  WorkerCodec worker_{compression_, clock_source_};
  std::deque<std::vector<float>> memory_;
  ShardCodec shard_{{.compression = compression_, .shard = 1},
                    [this](std::size_t elements) -> Result<std::span<float>> {
                      return std::span<float>(memory_.emplace_back(elements));
                    }};
  std::vector<float> weights_ = std::vector<float>(kFloats, 0.5f);  // the worker's
  std::int64_t clock_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Codec, ShardCodecTest, all_codecs(), letters_of);

TEST_P(ShardCodecTest, KeepsAMirrorThatIsTheWorkersWeightsBitByBit) {
  for (int step = 0; step < 30; ++step) {
    answer(drawn(static_cast<std::uint64_t>(step)));
    EXPECT_TRUE(std::ranges::equal(weights_, shard_.mirror(0, 0))) << step;
  }
}

TEST_P(ShardCodecTest, GoesOnFromASavedMirrorAsIfNothingHadHappened) {
  constexpr std::size_t kBegin = 64;  // of the arena
  answer(drawn(1));
  TrainingState state;
  shard_.save(0, 0, kBegin, state);
  ShardCodec other({.compression = compression_, .workers = 2, .shard = 1},
                   [this](std::size_t elements) -> Result<std::span<float>> {
                     return std::span<float>(memory_.emplace_back(elements));
                   });
  for (const int worker : {0, 1}) {
    const auto greeting = other.greet(worker, 0, {kBegin, kBegin + kFloats}, state);
    ASSERT_TRUE(greeting.ok()) << greeting.status().message();
    EXPECT_TRUE(std::ranges::equal(greeting->payload, std::as_bytes(std::span(weights_))));
  }
  const PushName push = next();
  const std::vector<float> weights = drawn(2);
  EXPECT_TRUE(std::ranges::equal(other.encode(push, weights)->payload, shard_.encode(push, weights)->payload));
  EXPECT_EQ(other.greet(0, 0, {0, kFloats}, state).status().code(), Code::kDataLoss);  // of which nothing was saved
}

TEST_P(ShardCodecTest, SendsWithTheNextAnswersWhatOneHasLost) {
  const std::vector<float> weights = drawn(1);
  answer(weights);
  const double first = distance(weights, weights_);
  EXPECT_GT(first, 0);
  for (int i = 0; i < 200; ++i) answer(weights);
  EXPECT_LT(distance(weights, weights_), first / 4);
}

// Without feedback, nine tenths of the gradient would be lost by some.
TEST_P(ShardCodecTest, AppliesAllOfAGradientInTheEnd) {
  const std::vector<float> gradient = drawn(2);
  std::vector<float> sum(kFloats, 0.0f);
  constexpr int kPushes = 400;
  for (int i = 0; i < kPushes; ++i) {
    const std::span<const float> decoded = pushed(gradient);
    for (std::size_t k = 0; k < kFloats; ++k) sum[k] += decoded[k] / kPushes;
  }
  EXPECT_LT(distance(gradient, sum), 0.1);
}

TEST_P(ShardCodecTest, RefusesWildBytesAndLeavesTheWeightsAlone) {
  Random random(7);
  std::vector<std::byte> bytes(4 * kFloats);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  const std::vector<float> before = weights_;
  for (int i = 0; i < 1000; ++i) {
    const auto begin = random.below(bytes.size());
    const std::span<const std::byte> wild = std::span(bytes).subspan(begin, random.below(bytes.size() - begin + 1));
    if (wild.size() == Codec(compression_.codec).encoded_size(kFloats)) continue;
    EXPECT_EQ(shard_.decode(next(), wild, kFloats).status().code(), Code::kInvalidArgument);
    EXPECT_EQ(worker_.apply_answer(next(), wild, weights_).code(), Code::kDataLoss);
  }
  EXPECT_TRUE(std::ranges::equal(weights_, before));
}

// With a push that turns out not to have been applied, and with none.
TEST(WorkerCodec, GoesOnWithTheVelocityThatWasSaved) {
  const Compression compression{.codec = {.kind = CodecKind::kTopK,
                                          .ratio = 0.1,
                                          .momentum = {.how = CompressMomentum::kCorrection, .momentum = 0.9f}}};
  const SteadyClock clock;
  const auto group = testing_support::connect_group("inproc", 3);
  const std::vector<Range> buckets{{0, kFloats}};
  WorkerCodec first(compression, clock), second(compression, clock), third(compression, clock);
  int rank = 0;
  for (WorkerCodec* const codec : {&first, &second, &third}) {
    ASSERT_TRUE(codec->allocate(*group[static_cast<std::size_t>(rank++)], buckets, kFloats, 1, true).ok());
  }
  const auto push = [](WorkerCodec& codec, std::int64_t number) {
    const auto bytes = codec.encode({.worker = 1, .clock = number}, 0, 0, drawn(static_cast<std::uint64_t>(number)));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  for (std::int64_t number = 1; number <= 4; ++number) push(first, number);
  const std::vector<std::byte> fifth = push(first, 5);
  TrainingState state;
  first.save(1, state);
  const std::vector<std::byte> sixth = push(first, 6);
  for (WorkerCodec* const codec : {&second, &third}) ASSERT_TRUE(codec->restore(1, state).ok());
  second.take_up(1, 0, 5);
  EXPECT_EQ(push(second, 6), sixth);
  third.take_up(1, 0, 4);
  EXPECT_EQ(push(third, 5), fifth);
  EXPECT_EQ(push(third, 6), sixth);
}

TEST(RangesIn, TakesAscendingRangesOfTheArenaAndNothingElse) {
  const auto read = [](const TensorRanges& tensors) { return ranges_in(std::as_bytes(std::span(tensors)), 100); };
  const TensorRanges right{{0, 1}, {16, 32}, {32, 100}};
  EXPECT_EQ(*read(right), right);
  EXPECT_TRUE(read({})->empty());
  for (const TensorRanges& wrong : {TensorRanges{{0, 101}}, TensorRanges{{16, 32}, {0, 16}}, TensorRanges{{16, 16}},
                                    TensorRanges{{0, 17}, {16, 32}}, TensorRanges{{32, 16}}}) {
    EXPECT_EQ(read(wrong).status().code(), Code::kInvalidArgument);
  }
  const auto half_a_pair = std::as_bytes(std::span(right)).first(24);
  EXPECT_EQ(ranges_in(half_a_pair, 100).status().code(), Code::kInvalidArgument);
}

// A chunk of a shard that begins in the midst of one tensor and ends in the midst of another.
TEST(ShardCodec, KeepsTheScaleOfATensorOutOfAnothers) {
  const TensorRanges tensors{{0, 64}, {64, 128}, {128, 160}};
  const Compression compression = compression_of("int8");
  const SteadyClock clock;
  const auto group = testing_support::connect_group("inproc", 1);
  WorkerCodec worker(compression, clock);
  ASSERT_TRUE(worker.allocate(*group[0], std::vector<Range>{{32, 160}}, 160, 1, false, tensors).ok());
  std::deque<std::vector<float>> memory;
  ShardCodec shard({.compression = compression}, [&](std::size_t elements) -> Result<std::span<float>> {
    return std::span<float>(memory.emplace_back(elements));
  });
  shard.know_tensors(tensors);
  std::vector<float> values(128, 1000.0f);
  std::fill_n(values.begin() + 32, 64, 0.001f);
  const PushName push{.clock = 1, .begin = 32};
  const auto decoded = shard.decode(push, worker.encode(push, 0, 0, values), values.size());
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_FLOAT_EQ((*decoded)[i], values[i]) << i;
  std::vector<float> weights(128);
  shard.sent_in_full(0, 0, weights);
  const auto answer = shard.encode(push, values);
  ASSERT_TRUE(answer.ok());
  ASSERT_TRUE(worker.apply_answer(push, answer->payload, weights).ok());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_FLOAT_EQ(weights[i], values[i]) << i;
}

TEST(ShardCodec, KeepsHeldGradientsApart) {
  const Compression compression = compression_of("fp16");
  ShardCodec shard({.compression = compression, .workers = 2, .holds_gradients = true}, nullptr);
  std::vector<std::byte> encoded(8);
  std::vector<std::span<const float>> gradients;
  for (int worker = 0; worker < 2; ++worker) {
    for (std::size_t chunk = 0; chunk < 3; ++chunk) {
      const float value = static_cast<float>(10 * worker) + static_cast<float>(chunk);
      Codec(compression.codec).encode(std::vector<float>(4, value), 0, encoded);
      gradients.push_back(*shard.decode({.worker = worker, .chunk = chunk, .clock = 1}, encoded, 4));
    }
  }
  const float expected[] = {0, 1, 2, 10, 11, 12};
  for (std::size_t i = 0; i < gradients.size(); ++i) EXPECT_THAT(gradients[i], testing::Each(expected[i]));
}

TEST(ShardCodec, SendsAnAnswerFromOtherMemoryWhileTheLastIsBeingRead) {
  std::deque<std::vector<float>> memory;
  ShardCodec shard({.compression = compression_of("int8")}, [&](std::size_t elements) -> Result<std::span<float>> {
    return std::span<float>(memory.emplace_back(elements));
  });
  const std::vector<float> weights(100, 1.0f);
  shard.sent_in_full(0, 0, weights);
  const auto first = shard.encode({.clock = 1}, weights);
  ASSERT_TRUE(first.ok());
  first->pending->counter()->fetch_add(1);
  const auto second = shard.encode({.clock = 2}, weights);
  ASSERT_TRUE(second.ok());
  EXPECT_NE(first->payload.data(), second->payload.data());
  first->pending->counter()->fetch_sub(1);
  const auto third = shard.encode({.clock = 3}, weights);
  ASSERT_TRUE(third.ok());
  EXPECT_TRUE(third->payload.data() == first->payload.data() || third->payload.data() == second->payload.data());
}

}  // namespace
}  // namespace syncopate::ps
