#include "common/codec/int8_chunks.h"

#include <algorithm>
#include <bit>

#include "common/os/target_clones.h"
#include "common/random.h"

namespace syncopate::codec {
namespace {

constexpr float kLeastMaximum = 0x1p-100f;
constexpr float kRounder = 0x1.8p23f;  // floats around it are 1 apart, and its last 8 bits are zero

std::size_t payload_bytes(std::size_t elements) { return elements; }

// The bits of the largest magnitude; above infinity's if there is a NaN. Magnitudes are ordered as their bits are.
std::int32_t largest_magnitude(const float* values, std::size_t count) {
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::bit_cast<std::int32_t>(values[i]) & 0x7FFFFFFF);
  }
  return largest;
}

// Writes the scale of a chunk. Returns what its values are multiplied by to become codes.
float store_scale(const float* values, std::size_t count, std::byte* out) {
  const float largest = std::bit_cast<float>(largest_magnitude(values, count));
  const bool is_zero = largest < kLeastMaximum;
  store(out, !std::isfinite(largest) ? kDiverged : is_zero ? 0.0f : largest / 127.0f);
  return is_zero ? 0.0f : 127.0f / largest;
}

SYNCOPATE_CLONES void encode_chunk(const float* __restrict values, std::size_t count, std::byte* __restrict out,
                                   std::size_t /*first*/) {
  const float inverse = store_scale(values, count, out);
  std::byte* __restrict codes = out + kScaleBytes;
  for (std::size_t i = 0; i < count; ++i) {
    codes[i] = static_cast<std::byte>(std::bit_cast<std::uint32_t>(values[i] * inverse + kRounder));
  }
}

// 32 random bits for each number: a Weyl sequence through the finaliser of MurmurHash3 (Appleby), as SplitMix64 does it
// with 64 bits (common/random.h). Without a state, so that a loop of them is made of vectors.
std::uint32_t mixed(std::uint32_t number, std::uint32_t key) {
  std::uint32_t bits = number * 0x9E3779B9u + key;
  bits = (bits ^ bits >> 16) * 0x85EBCA6Bu;
  bits = (bits ^ bits >> 13) * 0xC2B2AE35u;
  return bits ^ bits >> 16;
}

// The code of `value`, in units of the scale, plus a number from (-1/2, 1/2) that 16 bits draw, to nearest. The number
// keeps 2^-15 and more away from 1/2, which is more than rounding has moved a whole number by: it stays what it is, and
// 127 never becomes 128.
std::byte drawn_code(float value, std::uint32_t bits16) {
  constexpr float kWidth = 1 - 0x1p-14f;
  const float chance =
      static_cast<float>(static_cast<std::int32_t>(bits16)) * (kWidth * 0x1p-16f) + kWidth * (0x1p-17f - 0.5f);
  return static_cast<std::byte>(std::bit_cast<std::uint32_t>(value + chance + kRounder));
}

// The upper half of 32 drawn bits rounds a value of the chunk's first half, the lower half one of its second.
SYNCOPATE_CLONES void encode_chunk_drawn(const float* __restrict values, std::size_t count, std::byte* __restrict out,
                                         std::uint32_t first, std::uint32_t key) {
  const float inverse = store_scale(values, count, out);
  std::byte* __restrict codes = out + kScaleBytes;
  const std::size_t half = (count + 1) / 2;
  for (std::size_t i = 0; i < count / 2; ++i) {
    const std::uint32_t bits = mixed(first + static_cast<std::uint32_t>(i), key);
    codes[i] = drawn_code(values[i] * inverse, bits >> 16);
    codes[half + i] = drawn_code(values[half + i] * inverse, bits & 0xFFFF);
  }
  if (count % 2 == 0) return;
  const std::uint32_t bits = mixed(first + static_cast<std::uint32_t>(half - 1), key);
  codes[half - 1] = drawn_code(values[half - 1] * inverse, bits >> 16);
}

template <DecodeMode kMode>
SYNCOPATE_CLONES void decode_chunk(const std::byte* __restrict encoded, std::size_t count, float* __restrict out) {
  const float scale = load<float>(encoded);
  const std::byte* __restrict codes = encoded + kScaleBytes;
  for (std::size_t i = 0; i < count; ++i) {
    put<kMode>(scale * static_cast<float>(static_cast<std::int8_t>(codes[i])), out[i]);
  }
}

}  // namespace

std::size_t int8_size(std::size_t elements, const Tensors& tensors) {
  return chunked_size(elements, tensors, payload_bytes);
}

void encode_int8(std::span<const float> values, const Tensors& tensors, std::span<std::byte> out) {
  encode_chunks(values, tensors, payload_bytes, encode_chunk, out);
}

void encode_int8_stochastic(std::span<const float> values, const Tensors& tensors, std::uint64_t key,
                            std::span<std::byte> out) {
  const auto key32 = static_cast<std::uint32_t>(Random(key).next());
  const auto encode = [key32](const float* chunk, std::size_t count, std::byte* to, std::size_t first) {
    encode_chunk_drawn(chunk, count, to, static_cast<std::uint32_t>(first), key32);
  };
  encode_chunks(values, tensors, payload_bytes, encode, out);
}

Status decode_int8(std::span<const std::byte> encoded, const Tensors& tensors, DecodeMode mode, std::span<float> out) {
  const auto decode = [](auto constant, const std::byte* chunk, std::size_t count, float* values) {
    decode_chunk<constant()>(chunk, count, values);
  };
  return decode_chunks(encoded, tensors, mode, payload_bytes, decode, out);
}

}  // namespace syncopate::codec
