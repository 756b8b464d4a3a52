// The common part of int8 and sign: values are encoded in chunks, each after a scale of its own.
//
//   | scale, float32 | payload of 1024 values | scale | payload of 1024 | ... | scale | payload of the rest |
//
// A tensor always begins a new chunk; the chunk before it may have fewer values. So no two tensors share a scale, with
// which the large values of one would round the other's to nothing. Padding between tensors is in no chunk.
//
// A scale is finite and not negative, or it is NaN, which means that its whole chunk has diverged.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "common/codec/decode_mode.h"
#include "common/codec/unaligned.h"
#include "common/param_layout.h"
#include "common/status.h"

namespace syncopate::codec {

inline constexpr std::size_t kChunk = 1024;  // elements
inline constexpr std::size_t kScaleBytes = sizeof(float);
inline constexpr float kDiverged = std::numeric_limits<float>::quiet_NaN();

// Where tensors lie among the encoded values: `ranges` are ascending places in the arena, in which the first value has
// place `offset`. Values outside of them are padding. Empty: all values are of one tensor.
struct Tensors {
  std::span<const Range> ranges = {};
  std::size_t offset = 0;
};

// Calls body(first element, elements) for each tensor's part of `elements` values, in order.
template <typename Body>
void each_tensor(std::size_t elements, const Tensors& tensors, Body&& body) {
  if (tensors.ranges.empty()) return body(std::size_t{0}, elements);
  const Range all{tensors.offset, tensors.offset + elements};
  auto next = std::ranges::upper_bound(tensors.ranges, all.begin, {}, &Range::end);
  for (; next != tensors.ranges.end() && next->begin < all.end; ++next) {
    const std::size_t begin = std::max(next->begin, all.begin);
    body(begin - all.begin, std::min(next->end, all.end) - begin);
  }
}

// Returns how many of `elements` values are no padding.
inline std::size_t values_of_tensors(std::size_t elements, const Tensors& tensors) {
  std::size_t values = 0;
  each_tensor(elements, tensors, [&](std::size_t, std::size_t count) { values += count; });
  return values;
}

// Returns the encoded bytes of `elements` values. The payload of a chunk has payload_bytes(elements of the chunk)
// bytes.
template <typename PayloadBytes>
std::size_t chunked_size(std::size_t elements, const Tensors& tensors, PayloadBytes payload_bytes) {
  std::size_t bytes = 0;
  each_tensor(elements, tensors, [&](std::size_t, std::size_t count) {
    const std::size_t rest = count % kChunk;
    bytes +=
        count / kChunk * (kScaleBytes + payload_bytes(kChunk)) + (rest > 0 ? kScaleBytes + payload_bytes(rest) : 0);
  });
  return bytes;
}

// Calls body(first element, elements, offset of the scale) for every chunk.
template <typename PayloadBytes, typename Body>
void each_chunk(std::size_t elements, const Tensors& tensors, PayloadBytes payload_bytes, Body&& body) {
  std::size_t offset = 0;
  each_tensor(elements, tensors, [&](std::size_t first, std::size_t size) {
    for (std::size_t begin = 0; begin < size; begin += kChunk) {
      const std::size_t count = std::min(kChunk, size - begin);
      body(first + begin, count, offset);
      offset += kScaleBytes + payload_bytes(count);
    }
  });
}

// Fails with data loss unless all scales are valid as above. `encoded` must have the right length.
template <typename PayloadBytes>
Status check_scales(std::span<const std::byte> encoded, std::size_t elements, const Tensors& tensors,
                    PayloadBytes payload_bytes) {
  bool good = true;
  each_chunk(elements, tensors, payload_bytes, [&](std::size_t, std::size_t, std::size_t offset) {
    const float scale = load<float>(encoded.data() + offset);
    good = good && !(scale < 0) && !std::isinf(scale);
  });
  return good ? Status() : Status::data_loss("a scale must be finite and not negative, or NaN");
}

// Calls encode(values of the chunk, their number, where the scale goes, first element) for each chunk.
template <typename PayloadBytes, typename Encode>
void encode_chunks(std::span<const float> values, const Tensors& tensors, PayloadBytes payload_bytes, Encode encode,
                   std::span<std::byte> out) {
  each_chunk(values.size(), tensors, payload_bytes, [&](std::size_t begin, std::size_t count, std::size_t offset) {
    encode(values.data() + begin, count, out.data() + offset, begin);
  });
}

// Calls decode(into as a constant, the chunk's scale, elements, where they go) for each chunk. Fails as check_scales
// does.
template <typename PayloadBytes, typename Decode>
Status decode_chunks(std::span<const std::byte> encoded, const Tensors& tensors, DecodeMode mode,
                     PayloadBytes payload_bytes, Decode decode, std::span<float> out) {
  SYNCOPATE_RETURN_IF_ERROR(check_scales(encoded, out.size(), tensors, payload_bytes));
  with_constant(mode, [&](auto constant) {
    each_chunk(out.size(), tensors, payload_bytes, [&](std::size_t begin, std::size_t count, std::size_t offset) {
      decode(constant, encoded.data() + offset, count, out.data() + begin);
    });
  });
  return {};
}

}  // namespace syncopate::codec
