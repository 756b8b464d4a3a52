#include "common/codec/int8_chunks.h"

#include <bit>
#include <cstdint>

#include "common/codec/chunks.h"

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

void encode_chunk(const float* __restrict values, std::size_t count, std::byte* __restrict out) {
  const float largest = std::bit_cast<float>(largest_magnitude(values, count));
  const bool is_zero = largest < kLeastMaximum;
  store(out, !std::isfinite(largest) ? kDiverged : is_zero ? 0.0f : largest / 127.0f);
  const float inverse = is_zero ? 0.0f : 127.0f / largest;
  std::byte* __restrict codes = out + kScaleBytes;
  for (std::size_t i = 0; i < count; ++i) {
    codes[i] = static_cast<std::byte>(std::bit_cast<std::uint32_t>(values[i] * inverse + kRounder));
  }
}

template <Into kInto>
void decode_chunk(const std::byte* __restrict encoded, std::size_t count, float* __restrict out) {
  const float scale = load<float>(encoded);
  const std::byte* __restrict codes = encoded + kScaleBytes;
  for (std::size_t i = 0; i < count; ++i) {
    put<kInto>(scale * static_cast<float>(static_cast<std::int8_t>(codes[i])), out[i]);
  }
}

}  // namespace

std::size_t int8_size(std::size_t elements) { return chunked_size(elements, payload_bytes); }

void encode_int8(std::span<const float> values, std::span<std::byte> out) {
  encode_chunks(values, payload_bytes, encode_chunk, out);
}

Status decode_int8(std::span<const std::byte> encoded, Into into, std::span<float> out) {
  const auto decode = [](auto constant, const std::byte* chunk, std::size_t count, float* values) {
    decode_chunk<constant()>(chunk, count, values);
  };
  return decode_chunks(encoded, into, payload_bytes, decode, out);
}

}  // namespace syncopate::codec
