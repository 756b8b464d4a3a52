#include "common/codec/half_floats.h"

#include <bit>
#include <cstdint>

#include "common/codec/unaligned.h"
#include "common/os/target_clones.h"

namespace syncopate::codec {
namespace {

constexpr std::uint32_t kInfinity = 0x7F800000;        // float32
constexpr std::uint32_t kLeastNormal = 113u << 23;     // fp16's 2^-14, as float32
constexpr std::uint32_t kBiasDifference = 112u << 23;  // of the exponents of float32 and fp16
constexpr std::uint32_t kOverflow = 0x477FF000;        // 65520, from which on fp16 rounds to infinity
constexpr std::uint32_t kHalf = 0x3F000000;            // 0.5f, in whose neighbourhood floats are 2^-24 apart

inline std::uint16_t fp16_of(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  // Half of the last place that is kept, less one where the place is even: a tie then goes to the even neighbour.
  const std::uint32_t normal = (magnitude - kBiasDifference + 0xFFF + ((magnitude >> 13) & 1)) >> 13;
  // fp16's denormals are multiples of 2^-24; adding 0.5 rounds to them.
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(kHalf)) - kHalf;
  const std::uint32_t special = magnitude > kInfinity ? 0x7E00 : 0x7C00;
  std::uint32_t result = magnitude < kLeastNormal ? denormal : normal;
  result = magnitude >= kOverflow ? special : result;
  return static_cast<std::uint16_t>(sign | result);
}

inline float float_of_fp16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7FFF) << 13;
  const std::uint32_t normal = magnitude + kBiasDifference;
  // As if it had the exponent of 2^-14 and a leading one, which is then taken off.
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude + kLeastNormal) - std::bit_cast<float>(kLeastNormal));
  std::uint32_t result = magnitude < (1u << 23) ? denormal : normal;
  result = magnitude >= (31u << 23) ? magnitude | kInfinity : result;
  return std::bit_cast<float>(sign | result);
}

inline std::uint16_t bf16_of(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40;
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFF) > kInfinity ? quiet : rounded);
}

inline float float_of_bf16(std::uint16_t half) { return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16); }

template <typename Convert>
SYNCOPATE_CLONES void encode(std::span<const float> values, std::span<std::byte> out, Convert convert) {
  const float* __restrict from = values.data();
  std::byte* __restrict to = out.data();
  for (std::size_t i = 0; i < values.size(); ++i) store(to + 2 * i, convert(from[i]));
}

template <typename Convert>
SYNCOPATE_CLONES void decode(std::span<const std::byte> encoded, DecodeMode mode, std::span<float> out,
                             Convert convert) {
  with_constant(mode, [&](auto constant) {
    const std::byte* __restrict from = encoded.data();
    float* __restrict to = out.data();
    for (std::size_t i = 0; i < out.size(); ++i) put<constant()>(convert(load<std::uint16_t>(from + 2 * i)), to[i]);
  });
}

}  // namespace

void encode_fp16(std::span<const float> values, std::span<std::byte> out) {
  encode(values, out, [](float value) { return fp16_of(value); });
}

void encode_bf16(std::span<const float> values, std::span<std::byte> out) {
  encode(values, out, [](float value) { return bf16_of(value); });
}

void decode_fp16(std::span<const std::byte> encoded, DecodeMode mode, std::span<float> out) {
  decode(encoded, mode, out, [](std::uint16_t half) { return float_of_fp16(half); });
}

void decode_bf16(std::span<const std::byte> encoded, DecodeMode mode, std::span<float> out) {
  decode(encoded, mode, out, [](std::uint16_t half) { return float_of_bf16(half); });
}

}  // namespace syncopate::codec
