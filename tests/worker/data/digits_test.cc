#include "worker/data/digits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

namespace syncopate::worker {
namespace {

constexpr std::size_t kPixels = 28 * 28;

struct DigitSample {
  std::vector<std::uint8_t> image;
  int label = 0;
  bool operator==(const DigitSample&) const = default;
};

DigitSample sample(std::uint64_t seed, std::uint64_t index) {
  DigitSample drawn{.image = std::vector<std::uint8_t>(kPixels)};
  drawn.label = render_digit(seed, index, drawn.image);
  return drawn;
}

// FNV-1a.
std::uint64_t hash_of(std::uint64_t seed, std::uint64_t first, std::uint64_t count) {
  std::uint64_t hash = 0xCBF29CE484222325ull;
  const auto add = [&](std::uint8_t byte) { hash = (hash ^ byte) * 0x100000001B3ull; };
  for (std::uint64_t i = 0; i < count; ++i) {
    const DigitSample drawn = sample(seed, first + i);
    add(static_cast<std::uint8_t>(drawn.label));
    for (const std::uint8_t byte : drawn.image) add(byte);
  }
  return hash;
}

// The very bytes, on every machine and under every compiler option. A change of the generator changes these, and must
// raise kDigitsVersion.
TEST(Digits, AreTheSameEverywhere) {
  EXPECT_EQ(kDigitsVersion, 1);
  EXPECT_EQ(hash_of(1, 0, 500), 12943130880207560374u);
  EXPECT_EQ(hash_of(1, kFirstTestDigit, 500), 12534772887712720121u);
  EXPECT_EQ(hash_of(42, 59'000, 500), 11996832082132242113u);
}

TEST(Digits, DependOnSeedAndIndexAlone) {
  const DigitSample once = sample(3, 17);
  sample(4, 99);
  EXPECT_EQ(sample(3, 17), once);
  EXPECT_NE(sample(4, 17), once);
  EXPECT_NE(sample(3, 18), once);
  EXPECT_NE(sample(3, kFirstTestDigit + 17), once);
}

TEST(Digits, HaveEachClassOnceInEveryTenAndInNoFixedOrder) {
  std::set<std::array<int, 10>> orders;
  for (const std::uint64_t first : {std::uint64_t{0}, kFirstTestDigit}) {
    for (std::uint64_t block = first; block < first + 1000; block += 10) {
      std::array<int, 10> labels;
      for (std::uint64_t i = 0; i < 10; ++i) labels[i] = digit_label(1, block + i);
      orders.insert(labels);
      EXPECT_THAT(labels, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    }
  }
  EXPECT_GT(orders.size(), 190u);  // of 200; all but surely all differ
}

TEST(Digits, AreWrittenInInkOnPaper) {
  for (std::uint64_t i = 0; i < 200; ++i) {
    const DigitSample drawn = sample(1, i);
    const auto dark = std::ranges::count_if(drawn.image, [](std::uint8_t value) { return value > 100; });
    EXPECT_GT(dark, 8) << "sample " << i;
    EXPECT_LT(dark, 450) << "sample " << i;
  }
}

TEST(Digits, DrawnByTwoThreadsAreThoseDrawnByOne) {
  constexpr std::size_t kCount = 101;
  std::vector<std::uint8_t> images(kCount * kPixels), labels(kCount);
  render_digits(5, 1000, images, labels);
  for (std::size_t i = 0; i < kCount; ++i) {
    const DigitSample one = sample(5, 1000 + i);
    EXPECT_EQ(labels[i], one.label);
    EXPECT_TRUE(
        std::equal(one.image.begin(), one.image.end(), images.begin() + static_cast<std::ptrdiff_t>(i * kPixels)));
  }
}

}  // namespace
}  // namespace syncopate::worker
