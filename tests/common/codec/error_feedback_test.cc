#include "common/codec/error_feedback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/random.h"
#include "tests/support/plain_gradient_compression.h"

namespace syncopate {
namespace {

class LossyCodec : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Codecs, LossyCodec, testing::Values("topk:0.05", "topk2bit:0.05", "randomk:0.05", "sign"),
                         [](const auto& test) {
                           return std::string(test.param).substr(0, std::string(test.param).find(':'));
                         });

// Encodes steps of gradients of one arena, in two ranges, and sums what a receiver decodes.
struct Sender {
  explicit Sender(const char* codec, std::size_t size) : feedback(*parse_codec(codec), size), received(size) {}

  void step(std::span<const float> gradient, std::uint64_t number) {
    const std::size_t middle = received.size() / 3;
    for (const Range range : {Range{0, middle}, Range{middle, received.size()}}) {
      std::vector<std::byte> bytes(feedback.codec().encoded_size(range.size()));
      feedback.encode(range, slice(gradient, range), number, bytes);
      std::vector<float> decoded(range.size());
      ASSERT_TRUE(feedback.codec().decode(bytes, number, decoded).ok());
      for (std::size_t i = 0; i < decoded.size(); ++i) received[range.begin + i] += static_cast<double>(decoded[i]);
    }
  }

  ErrorFeedback feedback;
  std::vector<double> received;
};

TEST_P(LossyCodec, WhatWasSentAndTheResidualAreAllGradients) {
  constexpr std::size_t kSize = 3000;
  Sender sender(GetParam(), kSize);
  Random random(1);
  std::vector<float> gradient(kSize);
  std::vector<double> given(kSize);
  for (int step = 0; step < 50; ++step) {
    for (float& value : gradient) value = static_cast<float>(random.normal());
    for (std::size_t i = 0; i < kSize; ++i) given[i] += static_cast<double>(gradient[i]);
    sender.step(gradient, static_cast<std::uint64_t>(step));
  }
  for (std::size_t i = 0; i < kSize; ++i) {
    ASSERT_NEAR(sender.received[i] + static_cast<double>(sender.feedback.residual()[i]), given[i], 1e-3) << i;
  }
}

// A gradient that is the same in every step must not be left out for good, wherever it is small.
TEST_P(LossyCodec, SendsSmallGradientsInTheEnd) {
  constexpr std::size_t kSize = 300;
  constexpr int kSteps = 2000;
  Sender sender(GetParam(), kSize);
  std::vector<float> gradient(kSize, 0.01f);
  std::fill_n(gradient.begin(), 20, 1.0f);
  for (int step = 0; step < kSteps; ++step) sender.step(gradient, static_cast<std::uint64_t>(step));
  for (std::size_t i = 0; i < kSize; ++i) {
    EXPECT_NEAR(sender.received[i] / (kSteps * static_cast<double>(gradient[i])), 1, 0.25) << i;
  }
}

TEST(ErrorFeedback, KeepsExactlyWhatTopKLeavesOut) {
  ErrorFeedback feedback(*parse_codec("topk:0.25"), 4);
  std::vector<std::byte> bytes(8);
  const std::vector<float> gradient{1, -4, 2, 3};
  feedback.encode({0, 4}, gradient, 0, bytes);
  EXPECT_EQ(std::vector<float>(feedback.residual().begin(), feedback.residual().end()),
            (std::vector<float>{1, 0, 2, 3}));
  feedback.encode({0, 4}, gradient, 1, bytes);
  EXPECT_EQ(std::vector<float>(feedback.residual().begin(), feedback.residual().end()),
            (std::vector<float>{2, -4, 4, 0}));
}

TEST(ErrorFeedback, TouchesItsRangeAlone) {
  ErrorFeedback feedback(*parse_codec("topk:0.5"), 6);
  std::ranges::fill(feedback.residual(), 10.0f);
  std::vector<std::byte> bytes(8);
  feedback.encode({2, 4}, std::vector<float>{1, 2}, 0, bytes);
  EXPECT_EQ(std::vector<float>(feedback.residual().begin(), feedback.residual().end()),
            (std::vector<float>{10, 10, 11, 0, 10, 10}));
}

TEST(MomentumCorrection, SendsAndKeepsWhatThePaperSays) {
  ParamLayout layout;
  layout.add("weights", {40, 16});
  const Range ranges[] = {{320, 640}, {0, 320}};
  std::vector<float> gradient(layout.size());
  for (const CodecConfig& config : testing_support::momentum_codecs()) {
    ErrorFeedback feedback(config, layout.size());
    testing_support::PlainCompressor plain(config, layout);
    for (int step = 0; step < 12; ++step) {
      feedback.begin_epoch(step / 3);
      testing_support::draw_small_integers(layout, 0, step, gradient);
      for (const Range range : ranges) {
        std::vector<std::byte> bytes(feedback.codec().encoded_size(range.size()));
        const std::span<const float> part = slice(std::span<const float>(gradient), range);
        feedback.encode(range, part, 0, bytes);
        std::vector<float> sent(range.size());
        ASSERT_TRUE(feedback.codec().decode(bytes, 0, sent).ok());
        ASSERT_EQ(sent, plain.sent(range, part, step / 3)) << name_of(config.momentum.how) << " step " << step;
      }
      ASSERT_TRUE(std::ranges::equal(feedback.velocity(), plain.velocity())) << step;
      ASSERT_TRUE(std::ranges::equal(feedback.residual(), plain.residual())) << step;
    }
  }
}

// What is sent in the end is what momentum makes of all gradients, though it is sent late.
TEST(MomentumCorrection, LosesNothingOfAVelocity) {
  const CodecConfig config{
      .kind = CodecKind::kTopK, .ratio = 0.1, .momentum = {.how = CompressMomentum::kCorrection, .momentum = 0.9f}};
  constexpr std::size_t kSize = 200;
  ErrorFeedback feedback(config, kSize);
  Random random(3);
  std::vector<float> gradient(kSize), sent(kSize);
  std::vector<double> velocity(kSize), given(kSize), received(kSize);
  std::vector<std::byte> bytes(feedback.codec().encoded_size(kSize));
  for (int step = 0; step < 200; ++step) {
    for (float& value : gradient) value = static_cast<float>(random.normal());
    feedback.encode({0, kSize}, gradient, 0, bytes);
    ASSERT_TRUE(feedback.codec().decode(bytes, 0, sent).ok());
    for (std::size_t i = 0; i < kSize; ++i) {
      velocity[i] = 0.9 * velocity[i] + static_cast<double>(gradient[i]);
      given[i] += velocity[i];
      received[i] += static_cast<double>(sent[i]);
    }
  }
  for (std::size_t i = 0; i < kSize; ++i) {
    ASSERT_NEAR(received[i] + static_cast<double>(feedback.residual()[i]), given[i], 0.01) << i;
  }
}

// As a run that goes on from a checkpoint does.
TEST(ErrorFeedback, AddsToWhatDecayHasLeftOfAResidual) {
  CodecConfig config = *parse_codec("topk:0.25");
  config.decay = 0.5f;
  ErrorFeedback feedback(config, 6);
  std::ranges::fill(feedback.residual(), 8.0f);
  std::vector<std::byte> bytes(8);
  feedback.encode({2, 6}, std::vector<float>{1, 20, 2, 3}, 0, bytes);
  EXPECT_EQ(std::vector<float>(feedback.residual().begin(), feedback.residual().end()),
            (std::vector<float>{8, 8, 5, 0, 6, 7}))
      << "of the range alone, and 24 was sent";
}

TEST(ErrorFeedback, GoesOnFromAResidualThatWasSet) {
  const std::vector<float> gradient{3, 1, 2, 5};
  ErrorFeedback first(*parse_codec("sign"), 4), second(*parse_codec("sign"), 4);
  std::vector<std::byte> bytes(first.codec().encoded_size(4)), again(bytes.size());
  first.encode({0, 4}, gradient, 0, bytes);
  std::ranges::copy(first.residual(), second.residual().begin());
  first.encode({0, 4}, gradient, 1, bytes);
  second.encode({0, 4}, gradient, 1, again);
  EXPECT_EQ(bytes, again);
}

}  // namespace
}  // namespace syncopate
