// What holds for every codec; their own formats are tested beside this.
#include "common/codec/codec.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "common/random.h"

namespace syncopate {
namespace {

constexpr std::uint64_t kKey = 42;
constexpr std::size_t kSizes[] = {0, 1, 5, 31, 32, 33, 1000, 1024, 1025, 3000};

std::vector<float> drawn(std::size_t size) {
  Random random(size + 1);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

class EveryCodec : public testing::TestWithParam<const char*> {
 protected:
  std::vector<std::byte> encoded(const std::vector<float>& values) {
    std::vector<std::byte> out(codec_.encoded_size(values.size()));
    codec_.encode(values, kKey, out);
    return out;
  }
  std::vector<float> decoded(std::span<const std::byte> bytes, std::size_t size) {
    std::vector<float> out(size, 99.0f);
    const Status status = codec_.decode(bytes, kKey, out);
    EXPECT_TRUE(status.ok()) << status.message();
    return out;
  }
  // Decodes bytes that may be anything, from memory and into memory that end where they end.
  Status try_decode(const std::vector<std::byte>& bytes, std::size_t size) {
    std::vector<float> out(size, 99.0f);
    const Status status = codec_.decode(bytes, kKey, out);
    if (!status.ok()) {
      EXPECT_EQ(status.code(), Code::kDataLoss);
      EXPECT_FALSE(status.message().empty());
      EXPECT_EQ(out, std::vector<float>(size, 99.0f)) << "written in spite of " << status.message();
    }
    return status;
  }

  Codec codec_{*parse_codec(GetParam())};
};
INSTANTIATE_TEST_SUITE_P(Codecs, EveryCodec,
                         testing::Values("none", "fp16", "bf16", "int8", "topk:0.05", "topk:1", "randomk:0.05",
                                         "randomk:1", "sign", "topk2bit:0.05", "topk2bit:1"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace_if(
                               name, [](char c) { return c == ':' || c == '.'; }, '_');
                           return name;
                         });

TEST_P(EveryCodec, AddsAndSubtractsWhatItDecodes) {
  for (const std::size_t size : kSizes) {
    const std::vector<std::byte> bytes = encoded(drawn(size));
    const std::vector<float> values = decoded(bytes, size);
    const std::vector<float> base = drawn(size);
    std::vector<float> sum = base, difference = base;
    ASSERT_TRUE(codec_.add_decoded(bytes, kKey, sum).ok());
    ASSERT_TRUE(codec_.subtract_decoded(bytes, kKey, difference).ok());
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_EQ(sum[i], base[i] + values[i]) << size << " " << i;
      ASSERT_EQ(difference[i], base[i] - values[i]) << size << " " << i;
    }
  }
}

TEST_P(EveryCodec, EncodesTheSameValuesToTheSameBytes) {
  const std::vector<float> values = drawn(3000);
  EXPECT_EQ(encoded(values), encoded(values));
}

TEST_P(EveryCodec, DecodesFromAnyAlignment) {
  const std::vector<std::byte> bytes = encoded(drawn(1025));
  const std::vector<float> expected = decoded(bytes, 1025);
  for (std::size_t shift = 1; shift < 4; ++shift) {
    std::vector<std::byte> moved(bytes.size() + shift);
    std::ranges::copy(bytes, moved.begin() + shift);
    EXPECT_EQ(decoded(std::span(moved).subspan(shift), 1025), expected);
    std::vector<std::byte> target(bytes.size() + shift);
    codec_.encode(drawn(1025), kKey, std::span(target).subspan(shift));
    EXPECT_TRUE(std::ranges::equal(std::span(target).subspan(shift), bytes));
  }
}

TEST_P(EveryCodec, RefusesEveryOtherLength) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{33}, std::size_t{300}}) {
    const std::vector<std::byte> bytes = encoded(drawn(size));
    for (std::size_t length = 0; length < bytes.size() + 20; ++length) {
      if (length == bytes.size()) continue;
      std::vector<std::byte> other(bytes.begin(), bytes.begin() + std::min(length, bytes.size()));
      other.resize(length);
      EXPECT_THAT(try_decode(other, size).message(), testing::HasSubstr(GetParam()));
    }
  }
  EXPECT_FALSE(try_decode(std::vector<std::byte>(1 << 20), 1).ok());
  EXPECT_FALSE(try_decode({}, 1 << 20).ok());
}

TEST_P(EveryCodec, DecodesOrRefusesAnyBytes) {
  Random random(7);
  for (int attempt = 0; attempt < 2000; ++attempt) {
    const std::size_t size = random.below(200);
    std::vector<std::byte> bytes(codec_.encoded_size(size));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
    (void)try_decode(bytes, size);
  }
}

TEST_P(EveryCodec, DecodesOrRefusesFlippedBits) {
  for (const std::size_t size : {std::size_t{40}, std::size_t{1030}}) {
    const std::vector<std::byte> bytes = encoded(drawn(size));
    Random random(8);
    for (int attempt = 0; attempt < 2000; ++attempt) {
      std::vector<std::byte> flipped = bytes;
      const std::uint64_t bit = random.below(8 * bytes.size());
      flipped[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      (void)try_decode(flipped, size);
    }
  }
}

// Random-k with all elements drawn: what is not drawn cannot show.
TEST(Codec, ShowsThatAGradientHasDiverged) {
  for (const char* name : {"none", "fp16", "bf16", "int8", "topk:0.01", "topk2bit:0.01", "randomk:1", "sign"}) {
    Codec codec(*parse_codec(name));
    const CodecKind kind = codec.config().kind;
    const bool as_nan = kind == CodecKind::kInt8 || kind == CodecKind::kSign || kind == CodecKind::kTopK2Bit;
    for (const float diverged : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                                 -std::numeric_limits<float>::infinity()}) {
      std::vector<float> values = drawn(2000), decoded(2000);
      values[1234] = diverged;
      std::vector<std::byte> bytes(codec.encoded_size(values.size()));
      codec.encode(values, kKey, bytes);
      ASSERT_TRUE(codec.decode(bytes, kKey, decoded).ok()) << name;
      if (as_nan || std::isnan(diverged)) {
        EXPECT_TRUE(std::isnan(decoded[1234])) << name;
      } else {
        EXPECT_EQ(decoded[1234], diverged) << name;
      }
    }
  }
}

TEST(Codec, KeepsValuesThatItsFormatHas) {
  std::vector<float> values;
  for (int i = -127; i <= 127; ++i) values.push_back(static_cast<float>(i));
  for (const char* name : {"none", "fp16", "bf16", "int8", "topk:1", "randomk:1"}) {
    Codec codec(*parse_codec(name));
    std::vector<std::byte> bytes(codec.encoded_size(values.size()));
    codec.encode(values, kKey, bytes);
    std::vector<float> decoded(values.size());
    ASSERT_TRUE(codec.decode(bytes, kKey, decoded).ok());
    EXPECT_EQ(decoded, values) << name;
  }
}

TEST(Codec, TakesWhatAnyEpochOfAWarmUpSendsAndNoOtherLength) {
  CodecConfig config = *parse_codec("topk:0.01");
  config.warmup_epochs = 2;
  Codec sender(config);
  const Codec receiver(config);
  const std::vector<float> values = drawn(1000);
  EXPECT_EQ(sender.largest_size(1000), 8u * 216);
  const std::size_t sizes[] = {8 * 216, 8 * 47, 8 * 10, 8 * 10};
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    sender.begin_epoch(epoch);
    std::vector<std::byte> bytes(sender.encoded_size(values.size()));
    ASSERT_EQ(bytes.size(), sizes[epoch]);
    sender.encode(values, kKey, bytes);
    std::vector<float> decoded(values.size());
    ASSERT_TRUE(receiver.decode(bytes, kKey, decoded).ok());
    EXPECT_EQ(std::ranges::count_if(decoded, [](float value) { return value != 0; }),
              static_cast<std::ptrdiff_t>(sizes[epoch] / 8));
    EXPECT_EQ(receiver.epoch_of(bytes.size(), values.size()), std::min<std::int64_t>(epoch, 2));
  }
  std::vector<float> out(values.size());
  for (const std::size_t bytes : {8u * 215, 8u * 46, 8u * 11, 8u * 1000, 0u}) {
    EXPECT_EQ(receiver.decode(std::vector<std::byte>(bytes), kKey, out).code(), Code::kDataLoss) << bytes;
  }
}

TEST(Codec, RefusesScalesThatAreNegativeOrInfinite) {
  for (const char* name : {"int8", "sign"}) {
    Codec codec(*parse_codec(name));
    std::vector<float> values(1025, 1.0f);
    std::vector<std::byte> bytes(codec.encoded_size(values.size()));
    codec.encode(values, kKey, bytes);
    const std::size_t second_scale = codec.encoded_size(1024);
    for (const float scale : {-1.0f, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
      std::vector<std::byte> wrong = bytes;
      std::memcpy(wrong.data() + second_scale, &scale, sizeof scale);
      std::vector<float> out(values.size(), 99.0f);
      EXPECT_EQ(codec.decode(wrong, kKey, out).code(), Code::kDataLoss);
      EXPECT_EQ(out, std::vector<float>(values.size(), 99.0f));
    }
  }
}

}  // namespace
}  // namespace syncopate
