#include "common/codec/codec_config.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace syncopate {
namespace {

TEST(CodecConfig, IsReadAndSpelledAlike) {
  for (const char* text : {"none", "fp16", "bf16", "int8", "topk:0.01", "randomk:0.125", "topk:1", "sign", "powersgd:4",
                           "powersgd:64", "topk:1e-06", "topk2bit:0.03125"}) {
    const Result<CodecConfig> config = parse_codec(text);
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(to_string(*config), text);
  }
  EXPECT_EQ(*parse_codec("topk:0.01"), (CodecConfig{.kind = CodecKind::kTopK, .ratio = 0.01}));
  EXPECT_EQ(*parse_codec("powersgd:4"), (CodecConfig{.kind = CodecKind::kPowerSgd, .rank = 4}));
}

TEST(CodecConfig, RefusesWhatIsNoCodecAndSaysWhatIs) {
  for (const char* text :
       {"", "fp8", "fp16:2", "none:", "topk", "topk:", "topk:0", "topk:1.5", "topk:-0.1", "topk:nan", "topk:0.1x",
        "topk2bit", "topk2bit:0", "randomk", "sign:1", "powersgd", "powersgd:0", "powersgd:65", "powersgd:2.5"}) {
    const Result<CodecConfig> config = parse_codec(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_EQ(config.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(config.status().message(), testing::HasSubstr(std::string(text) + ": codec must be none, fp16"));
  }
}

// The figures of Lin et al. 2018, section 3.3: 75 %, 93.75 %, 98.4375 % and 99.6 % are left out, and then 99.9 %.
TEST(CodecConfig, SendsExponentiallyLessFromEpochToEpochOfAWarmUp) {
  const CodecConfig config{.kind = CodecKind::kTopK, .ratio = 0.001, .warmup_epochs = 4};
  const double left_out[] = {0.75, 0.9375, 0.984375, 0.996, 0.999, 0.999};
  for (int epoch = 0; epoch < 6; ++epoch) EXPECT_NEAR(1 - ratio_in_epoch(config, epoch), left_out[epoch], 0.0015);
  EXPECT_EQ(ratio_in_epoch(config, 4), 0.001);
  EXPECT_EQ(ratio_in_epoch({.kind = CodecKind::kTopK, .ratio = 0.25}, 0), 0.25);
}

TEST(CodecConfig, HasAHashOfAllThatItSays) {
  const CodecConfig usual{.kind = CodecKind::kTopK, .ratio = 0.5, .warmup_epochs = 2};
  CodecConfig others[8];
  std::ranges::fill(others, usual);
  others[0].kind = CodecKind::kRandomK;
  others[1].ratio = 0.25;
  others[2].rounding = Int8Rounding::kStochastic;
  others[3].warmup_epochs = 3;
  others[4].momentum.how = CompressMomentum::kMasking;
  others[5].momentum.momentum = 0.5f;
  others[6].momentum.nesterov = true;
  others[7].whole_updates = 1;
  for (const CodecConfig& other : others) EXPECT_NE(hash_of(other), hash_of(usual));
  EXPECT_EQ(hash_of(CodecConfig(usual)), hash_of(usual));
}

TEST(CodecConfig, WantsErrorFeedbackOfEveryCodecUnderOneBitAdam) {
  EXPECT_FALSE(needs_error_feedback(CodecConfig{.kind = CodecKind::kInt8}));
  EXPECT_TRUE(needs_error_feedback(CodecConfig{.kind = CodecKind::kSign}));
  EXPECT_TRUE(needs_error_feedback(CodecConfig{.kind = CodecKind::kInt8, .whole_updates = 1}));
}

TEST(CodecConfig, KeepsAtLeastOneElementOfAny) {
  EXPECT_EQ(kept_elements(0.01, 1000), 10u);
  EXPECT_EQ(kept_elements(0.01, 1001), 11u);
  EXPECT_EQ(kept_elements(1e-9, 7), 1u);
  EXPECT_EQ(kept_elements(1, 7), 7u);
  EXPECT_EQ(kept_elements(1, 0), 0u);
}

}  // namespace
}  // namespace syncopate
