// Top-k with values of 2 bits: its bytes, against the formula, and what arrives.
#include "common/codec/top_k_2bit.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "common/random.h"
#include "tests/support/plain_codec.h"

namespace syncopate::codec {
namespace {

using testing::ElementsAre;

std::vector<float> drawn(std::size_t size) {
  Random random(size + 3);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

std::vector<std::byte> encoded(std::span<const float> values, double ratio) {
  std::vector<std::byte> out(top_k_2bit_size(values.size(), {}, ratio));
  std::vector<std::uint32_t> scratch;
  encode_top_k_2bit(values, {}, ratio, scratch, out);
  return out;
}

TEST(TopK2Bit, HasTwoMagnitudesAChunkAndFourteenBitsAValue) {
  EXPECT_EQ(top_k_2bit_size(0, {}, 0.03125), 0u);
  EXPECT_EQ(top_k_2bit_size(4096, {}, 0.03125), 8u + 128 * 12 / 8 + 128 * 2 / 8);
  EXPECT_EQ(top_k_2bit_size(10 * 4096, {}, 0.03125), 10 * 232u);
  // A chunk of one value more has one place, of two bytes, and one code.
  EXPECT_EQ(top_k_2bit_size(4097, {}, 0.03125), 232u + 8 + 2 + 1);
  EXPECT_EQ(top_k_2bit_size(100, {}, 0.05), 8u + (5 * 12 + 7) / 8 + 2);
}

TEST(TopK2Bit, WritesPlacesThenCodesFromTheLowestBitOn) {
  // The mean of 1.5, 2 and 4.5 is 2.67: 1.75 is that of those below, 4.5 of those above.
  const std::vector<float> values{0, -1.5f, 0.25f, 2, 1, -4.5f};
  EXPECT_THAT(
      encoded(values, 0.5),
      ElementsAre(std::byte{0x00}, std::byte{0x00}, std::byte{0xE0}, std::byte{0x3F},                   // 1.75
                  std::byte{0x00}, std::byte{0x00}, std::byte{0x90}, std::byte{0x40},                   // 4.5
                  std::byte{0x01}, std::byte{0x30}, std::byte{0x00}, std::byte{0x05}, std::byte{0x00},  // 1, 3, 5
                  std::byte{0b110010}));  // lower and negative; lower; upper and negative
  std::vector<float> decoded(6, 9);
  ASSERT_TRUE(decode_top_k_2bit(encoded(values, 0.5), {}, 0.5, DecodeMode::kReplace, decoded).ok());
  EXPECT_THAT(decoded, ElementsAre(0, -1.75f, 0, 1.75f, 0, -4.5f));
}

TEST(TopK2Bit, GivesOneMagnitudeToValuesThatHaveOne) {
  std::vector<float> decoded(4, 9);
  ASSERT_TRUE(
      decode_top_k_2bit(encoded(std::vector<float>{2, -2, 2, 2}, 0.75), {}, 0.75, DecodeMode::kReplace, decoded).ok());
  EXPECT_THAT(decoded, ElementsAre(2, -2, 2, 0)) << "of equal ones the first";
}

TEST(TopK2Bit, SendsOfEachChunkWhatPlainLoopsDo) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{4095}, std::size_t{4096}, std::size_t{9000}}) {
    const std::vector<float> values = drawn(size);
    std::vector<float> decoded(size, 9), expected = values;
    ASSERT_TRUE(decode_top_k_2bit(encoded(values, 0.1), {}, 0.1, DecodeMode::kReplace, decoded).ok());
    for (std::size_t begin = 0; begin < size; begin += kTopKChunk) {
      testing_support::plainly_level(0.1, std::span(expected).subspan(begin, std::min(kTopKChunk, size - begin)));
    }
    for (std::size_t i = 0; i < size; ++i) ASSERT_FLOAT_EQ(decoded[i], expected[i]) << size << " " << i;
  }
}

TEST(TopK2Bit, RefusesPlacesThatDoNotAscendOrLieOutsideAndMagnitudesThatCannotBe) {
  const std::vector<float> values{0, -1.5f, 0.25f, 2, 1, -4.5f};
  const auto refused = [&](std::size_t at, std::byte value) {
    std::vector<std::byte> bytes = encoded(values, 0.5);
    bytes[at] = value;
    std::vector<float> out(6, 9);
    const Status status = decode_top_k_2bit(bytes, {}, 0.5, DecodeMode::kAdd, out);
    EXPECT_EQ(out, std::vector<float>(6, 9));
    return status.message();
  };
  EXPECT_EQ(refused(8, std::byte{0x03}), "place 3: must ascend and be below 6") << "twice";
  EXPECT_EQ(refused(11, std::byte{0x06}), "place 6: must ascend and be below 6");
  EXPECT_THAT(refused(3, std::byte{0xBF}), testing::StartsWith("a magnitude of -1.75: must be finite"));
  EXPECT_THAT(refused(7, std::byte{0xC0}), testing::StartsWith("a magnitude of -4.5: must be finite"));
}

}  // namespace
}  // namespace syncopate::codec
