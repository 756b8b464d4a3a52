#include "common/codec/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "common/random.h"

namespace syncopate::codec {
namespace {

struct Sent {
  std::vector<std::uint32_t> indices;
  std::vector<std::uint32_t> bits;  // of the values: NaN compares

  bool operator==(const Sent&) const = default;
};

Sent sent(const std::vector<float>& values, std::size_t k) {
  std::vector<std::uint32_t> scratch;
  std::vector<std::uint32_t> words(2 * k);
  encode_top_k(values, scratch, std::as_writable_bytes(std::span(words)));
  return {{words.begin(), words.begin() + k}, {words.begin() + k, words.end()}};
}

// By sorting all of them.
Sent largest(const std::vector<float>& values, std::size_t k) {
  const auto key = [&](std::uint32_t i) { return std::bit_cast<std::uint32_t>(values[i]) & 0x7FFFFFFF; };
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) { return key(a) > key(b); });
  order.resize(k);
  std::ranges::sort(order);
  Sent result{order, {}};
  for (const std::uint32_t i : order) result.bits.push_back(std::bit_cast<std::uint32_t>(values[i]));
  return result;
}

std::vector<float> drawn(std::size_t size, double part_of_zeros) {
  Random random(size);
  std::vector<float> values(size);
  for (float& value : values) {
    value = random.uniform() < part_of_zeros ? 0.0f : static_cast<float>(random.normal() * std::exp(random.normal()));
  }
  return values;
}

TEST(TopK, SendsTheLargestMagnitudesByAscendingIndex) {
  const Sent result = sent({1, -5, 0.5f, 4, -3}, 3);
  EXPECT_EQ(result.indices, (std::vector<std::uint32_t>{1, 3, 4}));
  EXPECT_EQ(std::bit_cast<float>(result.bits[0]), -5);
}

TEST(TopK, AgreesWithASortOfAllForAnySizeAndPart) {
  for (const std::size_t size : {1, 2, 31, 32, 33, 1000, 5000, 70001}) {
    for (const double part : {0.0001, 0.001, 0.01, 0.1, 0.5, 1.0}) {
      const auto k = static_cast<std::size_t>(std::ceil(part * static_cast<double>(size)));
      for (const double zeros : {0.0, 0.995}) {
        const std::vector<float> values = drawn(size, zeros);
        ASSERT_EQ(sent(values, k), largest(values, k)) << size << " " << k << " " << zeros;
      }
    }
  }
}

TEST(TopK, TakesTheFirstOfEqualMagnitudes) {
  EXPECT_EQ(sent({2, -2, 1, 2, -2}, 2).indices, (std::vector<std::uint32_t>{0, 1}));
  std::vector<float> values(10000, -1.0f);
  EXPECT_EQ(sent(values, 100), largest(values, 100));
  std::ranges::fill(values, 0.0f);
  EXPECT_EQ(sent(values, 100), largest(values, 100));
}

// Large values where a sample is unlikely to find them, and small ones everywhere else; and the other way round.
TEST(TopK, IsExactWhateverTheSampleWas) {
  for (const float usual : {0.001f, 1000.0f}) {
    std::vector<float> values(100000, usual);
    for (std::size_t i = 0; i < 40; ++i) values[50000 + i] = static_cast<float>(i + 1);
    for (const std::size_t k : {10, 41, 1000}) EXPECT_EQ(sent(values, k), largest(values, k)) << usual << " " << k;
  }
}

TEST(TopK, SendsNaNBeforeInfinityBeforeNumbers) {
  std::vector<float> values(5000, 1e30f);
  values[4000] = std::numeric_limits<float>::quiet_NaN();
  values[17] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(sent(values, 2).indices, (std::vector<std::uint32_t>{17, 4000}));
  EXPECT_EQ(sent(values, 1).indices, (std::vector<std::uint32_t>{4000}));
}

TEST(TopK, RefusesIndicesThatDoNotAscendOrAreOutOfRange) {
  const auto status_of = [](std::vector<std::uint32_t> words) {
    std::vector<float> out(10, 7.0f);
    const Status status = decode_top_k(std::as_bytes(std::span(words)), DecodeMode::kReplace, out);
    if (!status.ok()) {
      EXPECT_EQ(out, std::vector<float>(10, 7.0f));
    }
    return status;
  };
  EXPECT_TRUE(status_of({0, 9, 1, 1}).ok());
  EXPECT_EQ(status_of({0, 10, 1, 1}).code(), Code::kDataLoss);
  EXPECT_EQ(status_of({0, 0xFFFFFFFF, 1, 1}).code(), Code::kDataLoss);
  EXPECT_EQ(status_of({3, 3, 1, 1}).code(), Code::kDataLoss);
  EXPECT_EQ(status_of({4, 3, 1, 1}).message(), "index 3: must ascend and be below 10");
}

}  // namespace
}  // namespace syncopate::codec
