#include "common/codec/int8_chunks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/codec/chunks.h"
#include "common/random.h"

namespace syncopate::codec {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> round_trip(const std::vector<float>& values) {
  std::vector<std::byte> encoded(int8_size(values.size()));
  encode_int8(values, encoded);
  std::vector<float> decoded(values.size());
  EXPECT_TRUE(decode_int8(encoded, Into::kReplace, decoded).ok());
  return decoded;
}

TEST(Int8, HasAByteAnElementAndAScaleAChunk) {
  EXPECT_EQ(int8_size(0), 0u);
  EXPECT_EQ(int8_size(1), 5u);
  EXPECT_EQ(int8_size(1024), 1028u);
  EXPECT_EQ(int8_size(1025), 1033u);
}

TEST(Int8, MultiplesOfTheScaleStayExact) {
  std::vector<float> values;
  for (int code = -127; code <= 127; ++code) values.push_back(0.25f * static_cast<float>(code));
  EXPECT_EQ(round_trip(values), values);
}

TEST(Int8, RoundsTiesToEven) {
  EXPECT_EQ(round_trip({127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 0.49f, 2.51f}),
            (std::vector<float>{127, 0, 2, 2, 0, -2, 0, 3}));
}

TEST(Int8, LosesHalfAStepOfItsChunkAtMost) {
  Random random(1);
  std::vector<float> values(5 * kChunk + 77);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(random.normal() * std::pow(10.0, static_cast<double>(i / kChunk)));
  }
  const std::vector<float> decoded = round_trip(values);
  for (std::size_t begin = 0; begin < values.size(); begin += kChunk) {
    const std::size_t end = std::min(begin + kChunk, values.size());
    float largest = 0;
    for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(values[i]));
    for (std::size_t i = begin; i < end; ++i) {
      ASSERT_LE(std::abs(decoded[i] - values[i]), largest / 127 / 2 * 1.0001f) << i;
    }
  }
}

TEST(Int8, AChunkThatHasDivergedIsNaNAndNoOther) {
  for (const float diverged : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> values(3 * kChunk, 1.0f);
    values[kChunk + 5] = diverged;
    const std::vector<float> decoded = round_trip(values);
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(std::isnan(decoded[i]), i / kChunk == 1) << i;
  }
}

TEST(Int8, ZerosAndWhatIsTooSmallForAScaleBecomeZero) {
  EXPECT_EQ(round_trip({0.0f, -0.0f, 0.0f}), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(round_trip({0x1p-101f, -1e-40f}), (std::vector<float>{0, 0}));
  EXPECT_EQ(round_trip({127 * 0x1p-100f, 0x1p-100f}), (std::vector<float>{127 * 0x1p-100f, 0x1p-100f}));
  const float most = std::numeric_limits<float>::max();
  EXPECT_FLOAT_EQ(round_trip({most, 0})[0], most);
}

}  // namespace
}  // namespace syncopate::codec
