// Padding between tensors is no value to any codec: tensors of 1, 3, 10 and 17 elements against plain ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/codec/codec.h"
#include "common/random.h"
#include "tests/support/plain_codec.h"

namespace syncopate {
namespace {

using testing_support::is_padding;
using testing_support::kSmallTensorsElements;
using testing_support::layout_of_small_tensors;

// They hold all four tensors, some, and parts of the last.
const Range kRanges[] = {{0, 80}, {0, 48}, {32, 80}, {16, 64}, {48, 64}, {64, 80}};

std::vector<float> drawn_values(const ParamLayout& layout, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(layout.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!is_padding(layout, i)) values[i] = static_cast<float>(random.normal());
  }
  return values;
}

std::size_t values_in(const ParamLayout& layout, Range range) {
  std::size_t values = 0;
  for (std::size_t i = range.begin; i < range.end; ++i) values += is_padding(layout, i) ? 0 : 1;
  return values;
}

class Padding : public testing::TestWithParam<const char*> {
 protected:
  const CodecConfig config_ = *parse_codec(GetParam());
  const ParamLayout layout_ = layout_of_small_tensors();
  Codec codec_{config_, tensor_ranges(layout_)};

  std::vector<std::byte> encoded(Range range, std::span<const float> arena, std::uint64_t key = 1) {
    std::vector<std::byte> bytes(codec_.encoded_size(range.size(), range.begin));
    codec_.encode(slice(arena, range), key, bytes, range.begin);
    return bytes;
  }
};

INSTANTIATE_TEST_SUITE_P(Codec, Padding,
                         testing::Values("none", "fp16", "bf16", "int8", "topk:0.25", "randomk:0.25", "sign",
                                         "topk2bit:0.25"),
                         [](const auto& tested) {
                           const std::string codec = tested.param;
                           return codec.substr(0, codec.find(':'));
                         });

TEST_P(Padding, IsNeitherCountedNorSent) {
  for (const Range& range : kRanges) {
    const std::size_t values = values_in(layout_, range);
    const std::map<CodecKind, std::size_t> bytes{{CodecKind::kNone, 4 * values},
                                                 {CodecKind::kFp16, 2 * values},
                                                 {CodecKind::kBf16, 2 * values},
                                                 {CodecKind::kTopK, 8 * ((values + 3) / 4)},
                                                 {CodecKind::kRandomK, 4 * ((values + 3) / 4)}};
    if (bytes.contains(config_.kind)) {
      EXPECT_EQ(codec_.encoded_size(range.size(), range.begin), bytes.at(config_.kind)) << range.begin;
    }
  }
  // Two magnitudes each; 1, 1, 3 and 5 places and codes.
  if (config_.kind == CodecKind::kTopK2Bit)
    EXPECT_EQ(codec_.encoded_size(80), 4 * 8 + (2 + 2 + 5 + 8) + (1 + 1 + 1 + 2));
  // Four scales; in sign a word of 32 signs behind each.
  if (config_.kind == CodecKind::kInt8) EXPECT_EQ(codec_.encoded_size(80), 4 * 4 + kSmallTensorsElements);
  if (config_.kind == CodecKind::kSign) EXPECT_EQ(codec_.encoded_size(80), 4 * 4 + 4 * 4);
}

TEST_P(Padding, ChangesNoValue) {
  if (config_.kind == CodecKind::kRandomK) GTEST_SKIP() << "draws: see below";
  for (const Range& range : kRanges) {
    const std::vector<float> arena = drawn_values(layout_, range.begin + range.end);
    std::vector<float> decoded(range.size(), 9.0f);
    ASSERT_TRUE(codec_.decode(encoded(range, arena), 1, decoded, range.begin).ok());
    const std::vector<float> expected = testing_support::plainly_sent(config_, layout_, range, arena);
    for (std::size_t i = 0; i < decoded.size(); ++i) {
      EXPECT_NEAR(decoded[i], expected[i], 1e-6) << range.begin << " + " << i;
    }
  }
}

TEST_P(Padding, BecomesZeroAndIsLeftAloneBySums) {
  const std::vector<float> arena = drawn_values(layout_, 3);
  const Range all{0, layout_.size()};
  std::vector<float> decoded(all.size(), 9.0f), sum(all.size(), 9.0f), difference(all.size(), 9.0f);
  const std::vector<std::byte> bytes = encoded(all, arena);
  ASSERT_TRUE(codec_.decode(bytes, 1, decoded).ok());
  ASSERT_TRUE(codec_.add_decoded(bytes, 1, sum).ok());
  ASSERT_TRUE(codec_.subtract_decoded(bytes, 1, difference).ok());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (is_padding(layout_, i)) {
      EXPECT_THAT((std::vector<float>{decoded[i], sum[i], difference[i]}), testing::ElementsAre(0, 9, 9)) << i;
    }
    EXPECT_FLOAT_EQ(sum[i], 9 + decoded[i]) << i;
    EXPECT_FLOAT_EQ(difference[i], 9 - decoded[i]) << i;
  }
}

TEST(PaddingOfRandomK, IsNeverDrawnAndEveryValueHasTheSameChance) {
  const ParamLayout layout = layout_of_small_tensors();
  Codec codec(*parse_codec("randomk:0.25"), tensor_ranges(layout));
  const std::vector<float> ones = [&] {
    std::vector<float> values(layout.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = is_padding(layout, i) ? 0.0f : 1.0f;
    return values;
  }();
  std::vector<float> times(layout.size());
  std::vector<std::byte> bytes(codec.encoded_size(ones.size()));
  constexpr int kDraws = 40000;
  for (std::uint64_t key = 0; key < kDraws; ++key) {
    codec.encode(ones, key, bytes);
    ASSERT_TRUE(codec.add_decoded(bytes, key, times).ok());
  }
  // 8 of 31, from parts of 3 or 4 values: a chance of 1/4 or 1/3, give or take five standard deviations.
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (is_padding(layout, i)) {
      EXPECT_EQ(times[i], 0) << i;
    } else {
      EXPECT_GT(times[i], kDraws / 4 - 5 * 87) << i;
      EXPECT_LT(times[i], kDraws / 3 + 5 * 95) << i;
    }
  }
}

}  // namespace
}  // namespace syncopate
