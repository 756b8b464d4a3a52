#include "common/codec/sign_chunks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/codec/chunks.h"
#include "common/random.h"

namespace syncopate::codec {
namespace {

std::vector<float> sign_round_trip(const std::vector<float>& values) {
  std::vector<std::byte> encoded(sign_size(values.size()));
  encode_sign(values, {}, encoded);
  std::vector<float> decoded(values.size());
  EXPECT_TRUE(decode_sign(encoded, {}, DecodeMode::kReplace, decoded).ok());
  return decoded;
}

TEST(Sign, HasABitAnElementInWholeWordsAndAScaleAChunk) {
  EXPECT_EQ(sign_size(0), 0u);
  EXPECT_EQ(sign_size(1), 8u);
  EXPECT_EQ(sign_size(32), 8u);
  EXPECT_EQ(sign_size(33), 12u);
  EXPECT_EQ(sign_size(1024), 132u);
  EXPECT_EQ(sign_size(1025), 140u);
}

TEST(Sign, DecodesToTheMeanMagnitudeWithEachSign) {
  EXPECT_EQ(sign_round_trip({1, -2, 3, -6}), (std::vector<float>{3, -3, 3, -3}));
  EXPECT_EQ(sign_round_trip({4, 0, -0.0f, -4}), (std::vector<float>{2, 2, -2, -2}));
}

TEST(Sign, KeepsEverySignOfLongRunsAndAScaleForEachChunk) {
  Random random(1);
  std::vector<float> values(2 * kChunk + 45);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i / kChunk + 1) * (random.below(2) == 0 ? -1.0f : 1.0f);
  }
  EXPECT_EQ(sign_round_trip(values), values);
}

TEST(Sign, AChunkThatHasDivergedIsNaNAndNoOther) {
  for (const float diverged : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> values(3 * kChunk, 1.0f);
    values[kChunk + 5] = diverged;
    const std::vector<float> decoded = sign_round_trip(values);
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(std::isnan(decoded[i]), i / kChunk == 1) << i;
  }
}

}  // namespace
}  // namespace syncopate::codec
