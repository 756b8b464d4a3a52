#include "common/codec/int8_chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/codec/chunks.h"
#include "common/random.h"

namespace syncopate::codec {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();

std::vector<float> int8_round_trip(const std::vector<float>& values) {
  std::vector<std::byte> encoded(int8_size(values.size()));
  encode_int8(values, {}, encoded);
  std::vector<float> decoded(values.size());
  EXPECT_TRUE(decode_int8(encoded, {}, DecodeMode::kReplace, decoded).ok());
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
  EXPECT_EQ(int8_round_trip(values), values);
}

TEST(Int8, RoundsTiesToEven) {
  EXPECT_EQ(int8_round_trip({127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 0.49f, 2.51f}),
            (std::vector<float>{127, 0, 2, 2, 0, -2, 0, 3}));
}

TEST(Int8, LosesHalfAStepOfItsChunkAtMost) {
  Random random(1);
  std::vector<float> values(5 * kChunk + 77);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(random.normal() * std::pow(10.0, static_cast<double>(i / kChunk)));
  }
  const std::vector<float> decoded = int8_round_trip(values);
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
  for (const float diverged : {kInfinite, -kInfinite, std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> values(3 * kChunk, 1.0f);
    values[kChunk + 5] = diverged;
    const std::vector<float> decoded = int8_round_trip(values);
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(std::isnan(decoded[i]), i / kChunk == 1) << i;
  }
}

TEST(Int8, ZerosAndWhatIsTooSmallForAScaleBecomeZero) {
  EXPECT_EQ(int8_round_trip({0.0f, -0.0f, 0.0f}), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(int8_round_trip({0x1p-101f, -1e-40f}), (std::vector<float>{0, 0}));
  EXPECT_EQ(int8_round_trip({127 * 0x1p-100f, 0x1p-100f}), (std::vector<float>{127 * 0x1p-100f, 0x1p-100f}));
  const float most = std::numeric_limits<float>::max();
  EXPECT_FLOAT_EQ(int8_round_trip({most, 0})[0], most);
}

// Large weights beside the small ones of a norm, as a model has them in one chunk of a shard.
TEST(Int8, KeepsTheSmallValuesOfATensorThatLiesBesideALargeOne) {
  constexpr std::size_t kLarge = 300, kSmall = 64;
  Random random(2);
  std::vector<float> values(kLarge + kSmall + kLarge);
  for (float& value : values) value = static_cast<float>(random.normal());
  const std::span<float> small = std::span(values).subspan(kLarge, kSmall);
  for (float& value : small) value *= 1e-4f;
  const Range ranges[] = {{0, kLarge}, {kLarge, kLarge + kSmall}, {kLarge + kSmall, values.size()}};
  const auto decoded = [&](const Tensors& tensors) {
    std::vector<std::byte> encoded(int8_size(values.size(), tensors));
    encode_int8(values, tensors, encoded);
    std::vector<float> out(values.size());
    EXPECT_TRUE(decode_int8(encoded, tensors, DecodeMode::kReplace, out).ok());
    return std::vector<float>(out.begin() + kLarge, out.begin() + kLarge + kSmall);
  };
  EXPECT_EQ(decoded({}), std::vector<float>(kSmall)) << "in one chunk all of them are lost";
  const std::vector<float> kept = decoded({ranges, 0});
  for (std::size_t i = 0; i < kSmall; ++i) EXPECT_NEAR(kept[i], small[i], 4e-4f / 127 / 2) << i;
}

// Plainly: a list of chunks, of 1024 values at most, none of which has values of two tensors, or padding.
TEST(Int8, BeginsAChunkWhereATensorBeginsWhereverARangeIsCut) {
  const std::vector<Range> ranges{{0, 1}, {16, 1039}, {1040, 1050}, {1056, 4990}, {4992, 9008}, {9008, 10000}};
  Random random(4);
  std::vector<float> arena(10000);
  for (float& value : arena) value = static_cast<float>(random.normal() * std::pow(10.0, random.uniform(-6, 6)));
  for (int attempt = 0; attempt < 200; ++attempt) {
    const std::size_t first = 16 * random.below(arena.size() / 16), size = random.below(arena.size() - first + 1);
    const std::span<const float> values = std::span(arena).subspan(first, size);
    std::vector<std::byte> expected;
    const auto tensor_of = [&](std::size_t i) {
      return std::ranges::find_if(ranges, [&](Range range) { return range.begin <= i && i < range.end; });
    };
    for (std::size_t begin = 0; begin < size;) {
      const auto tensor = tensor_of(first + begin);
      if (tensor == ranges.end()) {
        ++begin;
        continue;
      }
      std::size_t end = begin + 1;
      while (end < size && end - begin < kChunk && tensor_of(first + end) == tensor) ++end;
      std::vector<std::byte> chunk(int8_size(end - begin));
      encode_int8(values.subspan(begin, end - begin), {}, chunk);
      expected.insert(expected.end(), chunk.begin(), chunk.end());
      begin = end;
    }
    const Tensors tensors{ranges, first};
    ASSERT_EQ(int8_size(size, tensors), expected.size()) << first << " " << size;
    std::vector<std::byte> encoded(expected.size());
    encode_int8(values, tensors, encoded);
    ASSERT_EQ(encoded, expected) << first << " " << size;
  }
}

std::vector<float> drawn_trip(const std::vector<float>& values, std::uint64_t key) {
  std::vector<std::byte> encoded(int8_size(values.size()));
  encode_int8_stochastic(values, {}, key, encoded);
  std::vector<float> decoded(values.size());
  EXPECT_TRUE(decode_int8(encoded, {}, DecodeMode::kReplace, decoded).ok());
  return decoded;
}

TEST(Int8Stochastic, HasTheValuesAsItsMeanOverKeys) {
  constexpr int kKeys = 4000;
  constexpr float kStep = 1.0f / 127;
  std::vector<float> values{1.0f};
  Random random(5);
  for (int i = 0; i < 300; ++i) values.push_back(static_cast<float>(random.uniform(-1, 1)));
  for (const float part : {0.001f, 0.25f, 0.5f, 0.999f, -0.01f}) values.push_back(part * kStep);
  std::vector<double> sums(values.size());
  for (int key = 0; key < kKeys; ++key) {
    const std::vector<float> decoded = drawn_trip(values, static_cast<std::uint64_t>(key));
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_LT(std::abs(decoded[i] - values[i]), kStep * 1.0001f) << "to one of the two codes around it";
      sums[i] += static_cast<double>(decoded[i]);
    }
  }
  // A rounding has a deviation of half a step at most; five of the mean's.
  const double bound = 5 * 0.5 * static_cast<double>(kStep) / std::sqrt(kKeys);
  double bias = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(sums[i] / kKeys, static_cast<double>(values[i]), bound) << i;
    bias += sums[i] / kKeys - static_cast<double>(values[i]);
  }
  EXPECT_LT(std::abs(bias) / static_cast<double>(values.size()), bound / 10);
}

TEST(Int8Stochastic, LeavesMultiplesOfTheScaleAsTheyAre) {
  std::vector<float> values;
  for (int code = -127; code <= 127; ++code) values.push_back(0.25f * static_cast<float>(code));
  for (std::uint64_t key = 0; key < 2000; ++key) ASSERT_EQ(drawn_trip(values, key), values) << key;
}

// This holds at any scale: a value, and the factor that makes it a code, are rounded themselves.
TEST(Int8Stochastic, LeavesMultiplesOfAnyScaleAsTheyAre) {
  Random random(7);
  for (std::uint64_t key = 0; key < 3000; ++key) {
    const float largest = static_cast<float>(std::exp(random.uniform(-40, 40))), scale = largest / 127.0f;
    std::vector<float> values{largest};
    while (values.size() < kChunk) {
      values.push_back(scale * static_cast<float>(static_cast<int>(random.below(253)) - 126));
    }
    const std::vector<float> decoded = drawn_trip(values, key);
    for (std::size_t i = 1; i < values.size(); ++i) ASSERT_EQ(decoded[i], values[i]) << key << " " << i;
  }
}

TEST(Int8Stochastic, NeverLeavesTheRangeOfCodes) {
  Random random(6);
  for (std::uint64_t key = 0; key < 3000; ++key) {
    const float largest = static_cast<float>(std::exp(random.uniform(-40, 40)));
    std::vector<float> values(kChunk);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? largest : -largest;
    const std::vector<float> decoded = drawn_trip(values, key);
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(decoded[i], values[i], 1e-6f * largest) << key;
  }
}

TEST(Int8Stochastic, DrawsAnewForEachKeyAndPlaceAndTheSameForTheSame) {
  const std::vector<float> halves = [] {
    std::vector<float> values(3001, 0.5f);
    for (std::size_t i = 0; i < values.size(); i += kChunk) values[i] = 127.0f;
    return values;
  }();
  const std::vector<float> first = drawn_trip(halves, 1), second = drawn_trip(halves, 2);
  EXPECT_EQ(first, drawn_trip(halves, 1));
  std::size_t up = 0, same = 0, as_neighbour = 0, as_half_a_chunk_before = 0, as_chunk_before = 0;
  for (std::size_t i = 1; i < halves.size(); ++i) {
    up += first[i] == 1 ? 1 : 0;
    same += first[i] == second[i] ? 1 : 0;
    as_neighbour += first[i] == first[i - 1] ? 1 : 0;
    if (i >= kChunk / 2) as_half_a_chunk_before += first[i] == first[i - kChunk / 2] ? 1 : 0;
    if (i >= kChunk) as_chunk_before += first[i] == first[i - kChunk] ? 1 : 0;
  }
  for (const std::size_t half : {up, same, as_neighbour}) EXPECT_NEAR(static_cast<double>(half), 1500, 150);
  EXPECT_NEAR(static_cast<double>(as_half_a_chunk_before), 1245, 150);
  EXPECT_NEAR(static_cast<double>(as_chunk_before), 989, 150);
}

}  // namespace
}  // namespace syncopate::codec
