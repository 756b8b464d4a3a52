#include "common/codec/half_floats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "common/os/flush_denormals.h"
#include "common/random.h"

namespace syncopate::codec {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<std::uint16_t> halves_of(const std::vector<float>& values,
                                     void (*encode)(std::span<const float>, std::span<std::byte>)) {
  std::vector<std::uint16_t> halves(values.size());
  encode(values, std::as_writable_bytes(std::span(halves)));
  return halves;
}

std::vector<float> floats_of(const std::vector<std::uint16_t>& halves,
                             void (*decode)(std::span<const std::byte>, DecodeMode, std::span<float>)) {
  std::vector<float> values(halves.size());
  decode(std::as_bytes(std::span(halves)), DecodeMode::kReplace, values);
  return values;
}

std::vector<std::uint16_t> all_halves() {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  return halves;
}

// By the definition of IEEE 754 binary16.
double value_of_fp16(std::uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int mantissa = half & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);  // 31 goes on past 65504
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

// The nearest fp16, ties to even, found by search among all of them.
std::uint16_t nearest_fp16(float value) {
  const double magnitude = std::abs(static_cast<double>(value));
  std::uint16_t low = 0, high = 0x7C00;  // which stands for 65536 here, the next one were there no end
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (value_of_fp16(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - value_of_fp16(low);
  const double above = value_of_fp16(high) - magnitude;
  const bool up = magnitude >= 65536 || above < below || (above == below && high % 2 == 0);
  return static_cast<std::uint16_t>((std::signbit(value) ? 0x8000 : 0) | (up ? high : low));
}

// All magnitudes that fp16 has and some that it has not; also each border between two fp16s, and both floats beside it.
std::vector<float> telling_values() {
  std::vector<float> values{0.0f, -0.0f, 65504.0f, 65519.996f, 65520.0f, -65520.0f, 1e30f, 0x1p-25f, 0x1.000002p-25f};
  for (std::uint16_t half = 0; half < 0x7BFF; ++half) {
    const auto middle = static_cast<float>((value_of_fp16(half) + value_of_fp16(half + 1)) / 2);
    values.insert(values.end(), {middle, std::nextafter(middle, 0.0f), -std::nextafter(middle, kInfinity)});
  }
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    values.push_back(static_cast<float>(random.normal() * std::exp2(random.uniform(-30, 18))));
  }
  return values;
}

TEST(Fp16, EveryValueIsDecodedByItsDefinition) {
  const std::vector<std::uint16_t> halves = all_halves();
  const std::vector<float> values = floats_of(halves, decode_fp16);
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const int magnitude = halves[i] & 0x7FFF;
    if (magnitude > 0x7C00) {
      EXPECT_TRUE(std::isnan(values[i])) << i;
    } else if (magnitude == 0x7C00) {
      EXPECT_EQ(values[i], (halves[i] & 0x8000) != 0 ? -kInfinity : kInfinity);
    } else {
      ASSERT_EQ(values[i], value_of_fp16(halves[i])) << i;
      ASSERT_EQ(std::signbit(values[i]), (halves[i] & 0x8000) != 0) << i;
    }
  }
}

TEST(Fp16, EveryValueSurvivesARoundTrip) {
  const std::vector<std::uint16_t> halves = all_halves();
  const std::vector<std::uint16_t> again = halves_of(floats_of(halves, decode_fp16), encode_fp16);
  for (std::size_t i = 0; i < halves.size(); ++i) {
    if ((halves[i] & 0x7FFF) > 0x7C00) {
      EXPECT_GT(again[i] & 0x7FFF, 0x7C00) << "NaN must stay one: " << i;
    } else {
      ASSERT_EQ(again[i], halves[i]);
    }
  }
}

TEST(Fp16, RoundsToTheNearestAndTiesToEven) {
  const std::vector<float> values = telling_values();
  const std::vector<std::uint16_t> halves = halves_of(values, encode_fp16);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(halves[i], nearest_fp16(values[i])) << values[i];
}

TEST(Fp16, IsTheSameWhereDenormalsAreFlushed) {
  const std::vector<float> values = telling_values();
  const std::vector<std::uint16_t> before = halves_of(values, encode_fp16);
  const std::vector<float> decoded = floats_of(all_halves(), decode_fp16);
  const FlushDenormals flush;
  EXPECT_EQ(halves_of(values, encode_fp16), before);
  const std::vector<float> flushed = floats_of(all_halves(), decode_fp16);
  EXPECT_EQ(std::memcmp(flushed.data(), decoded.data(), decoded.size() * sizeof(float)), 0);
}

TEST(Bf16, IsTheUpperHalfOfAFloatAndSurvivesARoundTrip) {
  const std::vector<std::uint16_t> halves = all_halves();
  const std::vector<float> values = floats_of(halves, decode_bf16);
  const std::vector<std::uint16_t> again = halves_of(values, encode_bf16);
  for (std::size_t i = 0; i < halves.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(values[i]), static_cast<std::uint32_t>(i) << 16);
    if (std::isnan(values[i])) {
      EXPECT_EQ(again[i], halves[i] | 0x40) << "NaN must stay one";
    } else {
      ASSERT_EQ(again[i], halves[i]);
    }
  }
}

TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  const auto bits = [](std::uint32_t value) { return std::bit_cast<float>(value); };
  EXPECT_EQ(halves_of({bits(0x3F808000), bits(0x3F818000), bits(0x3F808001), bits(0x3F817FFF), bits(0xBF808001)},
                      encode_bf16),
            (std::vector<std::uint16_t>{0x3F80, 0x3F82, 0x3F81, 0x3F81, 0xBF81}));
  EXPECT_EQ(halves_of({std::numeric_limits<float>::max(), kInfinity, -kInfinity}, encode_bf16),
            (std::vector<std::uint16_t>{0x7F80, 0x7F80, 0xFF80}));
  // A NaN whose payload is in the lower half alone.
  EXPECT_EQ(halves_of({bits(0x7F800001)}, encode_bf16), (std::vector<std::uint16_t>{0x7FC0}));
}

}  // namespace
}  // namespace syncopate::codec
