#include "common/codec/random_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace syncopate::codec {
namespace {

// Which of n elements are sent under `key`: each value is its own index.
std::vector<float> drawn(std::uint64_t key, std::size_t n, std::size_t k) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.0f);
  std::vector<float> sent(k);
  encode_random_k(values, {}, key, std::as_writable_bytes(std::span(sent)));
  return sent;
}

TEST(RandomK, DrawsTheSameDistinctElementsFromTheSameKey) {
  const std::vector<float> first = drawn(5, 1000, 37);
  EXPECT_EQ(drawn(5, 1000, 37), first);
  EXPECT_NE(drawn(6, 1000, 37), first);
  EXPECT_TRUE(std::ranges::is_sorted(first, std::less_equal<>())) << "ascending, and so distinct";
}

TEST(RandomK, SendsAllWhereKIsAll) {
  std::vector<float> all(17);
  std::iota(all.begin(), all.end(), 0.0f);
  EXPECT_EQ(drawn(1, 17, 17), all);
}

TEST(RandomK, GivesEveryElementTheSameChance) {
  constexpr std::size_t kElements = 20, kKept = 3;
  constexpr int kDraws = 40000;
  std::vector<int> count(kElements);
  for (int key = 0; key < kDraws; ++key) {
    for (const float index : drawn(static_cast<std::uint64_t>(key), kElements, kKept)) {
      ++count[static_cast<std::size_t>(index)];
    }
  }
  // Parts have 6 or 7 elements: a chance of 1/6 or 1/7, give or take five standard deviations.
  for (const int times : count) {
    EXPECT_GT(times, kDraws / 7 - 5 * 71);
    EXPECT_LT(times, kDraws / 6 + 5 * 75);
  }
}

TEST(RandomK, DecodesWhatWasSentAndZerosElsewhere) {
  std::vector<float> values(100, 3.0f), sent(10), decoded(100, 9.0f);
  encode_random_k(values, {}, 1, std::as_writable_bytes(std::span(sent)));
  decode_random_k(std::as_bytes(std::span(sent)), {}, 1, DecodeMode::kReplace, decoded);
  EXPECT_EQ(std::ranges::count(decoded, 3.0f), 10);
  EXPECT_EQ(std::ranges::count(decoded, 0.0f), 90);
  for (const float index : drawn(1, 100, 10)) EXPECT_EQ(decoded[static_cast<std::size_t>(index)], 3.0f);
}

// What a sum of encodings means: the sum of the values, at the same elements.
TEST(RandomK, EncodingsOfOneKeyCanBeSummed) {
  const std::vector<float> a{1, 2, 3, 4, 5, 6}, b{10, 20, 30, 40, 50, 60};
  std::vector<float> sum(6), of_a(2), of_b(2), decoded(6);
  for (std::size_t i = 0; i < 6; ++i) sum[i] = a[i] + b[i];
  encode_random_k(a, {}, 7, std::as_writable_bytes(std::span(of_a)));
  encode_random_k(b, {}, 7, std::as_writable_bytes(std::span(of_b)));
  const std::vector<float> added{of_a[0] + of_b[0], of_a[1] + of_b[1]};
  decode_random_k(std::as_bytes(std::span(added)), {}, 7, DecodeMode::kReplace, decoded);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_TRUE(decoded[i] == 0 || decoded[i] == sum[i]);
}

}  // namespace
}  // namespace syncopate::codec
