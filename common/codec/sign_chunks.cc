#include "common/codec/sign_chunks.h"

#include <array>
#include <bit>
#include <cstdint>

#include "common/os/target_clones.h"

namespace syncopate::codec {
namespace {

constexpr std::size_t kWordBits = 32;
constexpr std::size_t kWordBytes = sizeof(std::uint32_t);

std::size_t payload_bytes(std::size_t elements) { return (elements + kWordBits - 1) / kWordBits * kWordBytes; }

// In 16 sums side by side, which a vector holds, so that the order of additions does not depend on the processor.
float mean_magnitude(const float* values, std::size_t count) {
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> sums{};
  const std::size_t whole = count / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += std::abs(values[i + lane]);
  }
  for (std::size_t i = whole; i < count; ++i) sums[i - whole] += std::abs(values[i]);
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum / static_cast<float>(count);
}

std::uint32_t signs_of(const float* values, std::size_t count) {
  std::uint32_t word = 0;
  for (std::uint32_t i = 0; i < count; ++i) word |= (std::bit_cast<std::uint32_t>(values[i]) >> 31) << i;
  return word;
}

SYNCOPATE_CLONES void encode_chunk(const float* __restrict values, std::size_t count, std::byte* __restrict out,
                                   std::size_t /*first*/) {
  const float mean = mean_magnitude(values, count);
  store(out, std::isfinite(mean) ? mean : kDiverged);
  out += kScaleBytes;
  const std::size_t whole = count / kWordBits;
  for (std::size_t word = 0; word < whole; ++word) {
    store(out + word * kWordBytes, signs_of(values + word * kWordBits, kWordBits));
  }
  if (count % kWordBits != 0) {
    store(out + whole * kWordBytes, signs_of(values + whole * kWordBits, count % kWordBits));
  }
}

template <DecodeMode kMode>
void put_signs(std::uint32_t word, std::uint32_t scale, float* __restrict out, std::size_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    put<kMode>(std::bit_cast<float>(scale | ((word >> i) & 1) << 31), out[i]);
  }
}

template <DecodeMode kMode>
SYNCOPATE_CLONES void decode_chunk(const std::byte* encoded, std::size_t count, float* out) {
  const auto scale = load<std::uint32_t>(encoded) & 0x7FFFFFFF;
  encoded += kScaleBytes;
  const std::size_t whole = count / kWordBits;
  for (std::size_t word = 0; word < whole; ++word) {
    put_signs<kMode>(load<std::uint32_t>(encoded + word * kWordBytes), scale, out + word * kWordBits, kWordBits);
  }
  if (count % kWordBits != 0) {
    put_signs<kMode>(load<std::uint32_t>(encoded + whole * kWordBytes), scale, out + whole * kWordBits,
                     count % kWordBits);
  }
}

}  // namespace

std::size_t sign_size(std::size_t elements, const Tensors& tensors) {
  return chunked_size(elements, tensors, payload_bytes);
}

void encode_sign(std::span<const float> values, const Tensors& tensors, std::span<std::byte> out) {
  encode_chunks(values, tensors, payload_bytes, encode_chunk, out);
}

Status decode_sign(std::span<const std::byte> encoded, const Tensors& tensors, DecodeMode mode, std::span<float> out) {
  const auto decode = [](auto constant, const std::byte* chunk, std::size_t count, float* values) {
    decode_chunk<constant()>(chunk, count, values);
  };
  return decode_chunks(encoded, tensors, mode, payload_bytes, decode, out);
}

}  // namespace syncopate::codec
