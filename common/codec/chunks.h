// What int8 and sign share: values go in chunks, each behind a scale of its own.
//
//   | scale, float32 | payload of 1024 values | scale | payload of 1024 | ... | scale | payload of the rest |
//
// A scale is finite and not negative, or it is NaN and all of its chunk has diverged.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "common/codec/decode_into.h"
#include "common/codec/unaligned.h"
#include "common/status.h"

namespace syncopate::codec {

inline constexpr std::size_t kChunk = 1024;  // elements
inline constexpr std::size_t kScaleBytes = sizeof(float);
inline constexpr float kDiverged = std::numeric_limits<float>::quiet_NaN();

// The length of `elements` values whose payloads have payload_bytes(elements of a chunk).
template <typename PayloadBytes>
std::size_t chunked_size(std::size_t elements, PayloadBytes payload_bytes) {
  const std::size_t rest = elements % kChunk;
  return elements / kChunk * (kScaleBytes + payload_bytes(kChunk)) + (rest > 0 ? kScaleBytes + payload_bytes(rest) : 0);
}

// Calls body(first element, elements, offset of its scale) for every chunk.
template <typename PayloadBytes, typename Body>
void each_chunk(std::size_t elements, PayloadBytes payload_bytes, Body&& body) {
  std::size_t offset = 0;
  for (std::size_t begin = 0; begin < elements; begin += kChunk) {
    const std::size_t count = std::min(kChunk, elements - begin);
    body(begin, count, offset);
    offset += kScaleBytes + payload_bytes(count);
  }
}

// Data loss unless all scales are as above. `encoded` has the right length.
template <typename PayloadBytes>
Status check_scales(std::span<const std::byte> encoded, std::size_t elements, PayloadBytes payload_bytes) {
  bool good = true;
  each_chunk(elements, payload_bytes, [&](std::size_t, std::size_t, std::size_t offset) {
    const float scale = load<float>(encoded.data() + offset);
    good = good && !(scale < 0) && !std::isinf(scale);
  });
  return good ? Status() : Status(Code::kDataLoss, "a scale must be finite and not negative, or NaN");
}

// encode(values of a chunk, their number, where its scale goes), chunk by chunk.
template <typename PayloadBytes, typename Encode>
void encode_chunks(std::span<const float> values, PayloadBytes payload_bytes, Encode encode, std::span<std::byte> out) {
  each_chunk(values.size(), payload_bytes, [&](std::size_t begin, std::size_t count, std::size_t offset) {
    encode(values.data() + begin, count, out.data() + offset);
  });
}

// decode(into as a constant, a chunk's scale, elements, where they go), chunk by chunk. Fails as check_scales does.
template <typename PayloadBytes, typename Decode>
Status decode_chunks(std::span<const std::byte> encoded, Into into, PayloadBytes payload_bytes, Decode decode,
                     std::span<float> out) {
  SYNCOPATE_RETURN_IF_ERROR(check_scales(encoded, out.size(), payload_bytes));
  with_constant(into, [&](auto constant) {
    each_chunk(out.size(), payload_bytes, [&](std::size_t begin, std::size_t count, std::size_t offset) {
      decode(constant, encoded.data() + offset, count, out.data() + begin);
    });
  });
  return {};
}

}  // namespace syncopate::codec
