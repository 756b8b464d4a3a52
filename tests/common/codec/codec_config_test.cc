#include "common/codec/codec_config.h"

#include <gmock/gmock.h>

namespace syncopate {
namespace {

TEST(CodecConfig, IsReadAndSpelledAlike) {
  for (const char* text : {"none", "fp16", "bf16", "int8", "topk:0.01", "randomk:0.125", "topk:1", "sign", "powersgd:4",
                           "powersgd:64", "topk:1e-06"}) {
    const Result<CodecConfig> config = parse_codec(text);
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(to_string(*config), text);
  }
  EXPECT_EQ(*parse_codec("topk:0.01"), (CodecConfig{.kind = CodecKind::kTopK, .ratio = 0.01}));
  EXPECT_EQ(*parse_codec("powersgd:4"), (CodecConfig{.kind = CodecKind::kPowerSgd, .rank = 4}));
}

TEST(CodecConfig, RefusesWhatIsNoCodecAndSaysWhatIs) {
  for (const char* text : {"", "fp8", "fp16:2", "none:", "topk", "topk:", "topk:0", "topk:1.5", "topk:-0.1", "topk:nan",
                           "topk:0.1x", "randomk", "sign:1", "powersgd", "powersgd:0", "powersgd:65", "powersgd:2.5"}) {
    const Result<CodecConfig> config = parse_codec(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_EQ(config.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(config.status().message(), testing::HasSubstr(std::string(text) + ": codec must be none, fp16"));
  }
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
