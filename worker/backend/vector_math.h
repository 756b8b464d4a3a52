// Functions of one float without branches or tables, so that the compiler vectorises loops over them, and sums over
// lanes, which it can vectorise: it must not reorder an ordinary sum.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace syncopate::worker {

// Returns e^x within 2 units in the last place. x below -87 counts as -87, above 88 as 88; NaN stays.
//
// e^x = 2^n · e^r, where n is the integer next to x / ln 2. So |r| <= ln 2 / 2, where the error of Taylor's series is
// less than 1e-8 after the seventh power.
inline float fast_exp(float x) {
  // Adding it drops all digits after the point, and leaves the integer in the lowest bits.
  constexpr float kRound = 0x1.8p23f;
  constexpr float kHigh = 0x1.62e4p-1f, kLow = 0x1.7f7d1cp-20f;  // ln 2 = their sum; n · kHigh is exact
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  const float shifted = x * 0x1.715476p0f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kHigh) - n * kLow;
  float series = 1.0f / 5040;
  series = series * r + 1.0f / 720;
  series = series * r + 1.0f / 120;
  series = series * r + 1.0f / 24;
  series = series * r + 1.0f / 6;
  series = series * r + 0.5f;
  series = series * r + 1.0f;
  series = series * r + 1.0f;
  const std::uint32_t exponent = (std::bit_cast<std::uint32_t>(shifted) << 23) + std::bit_cast<std::uint32_t>(1.0f);
  return series * std::bit_cast<float>(exponent);
}

inline constexpr std::size_t kLanes = 16;

// Returns the sum of term(0) .. term(count - 1).
template <typename Term>
float sum_of(std::size_t count, Term term) {
  std::array<float, kLanes> lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  }
  for (; i < count; ++i) lanes[i % kLanes] += term(i);
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

// Returns the largest of values[0 .. count - 1]. Requires count > 0.
inline float largest_of(const float* values, std::size_t count) {
  std::array<float, kLanes> lanes;
  lanes.fill(values[0]);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = values[i + lane] > lanes[lane] ? values[i + lane] : lanes[lane];
    }
  }
  for (; i < count; ++i) lanes[0] = values[i] > lanes[0] ? values[i] : lanes[0];
  float largest = lanes[0];
  for (const float value : lanes) largest = value > largest ? value : largest;
  return largest;
}

}  // namespace syncopate::worker
