// Top-k with values of 2 bits: of each chunk of 4096 values the k largest by magnitude, each as its place in the chunk,
// its sign, and which of two magnitudes it is nearer to (Sarfi et al. 2025, "Communication efficient LLM pre-training
// with SparseLoCo", algorithm 1: chunk-wise top-k, 2-bit values). The paper quantises by bins of the values'
// distribution, whose means travel; here the bins are the magnitudes above and below the mean, and their means are the
// two magnitudes: one step of Lloyd's algorithm (1982, "Least squares quantization in PCM").
//
//   | lower magnitude, float32 | upper, float32 | k places, 12 bits each, ascending | k codes, 2 bits each |
//
// k is the ratio's part of the chunk, rounded up. The places and the codes begin at a byte each. A code's lower bit
// says that the magnitude is the upper one, the other that the value is negative. A tensor begins a new chunk, as in
// chunks.h. A chunk of which a value that is sent is not finite has NaN for both magnitudes, and so for all that it
// sends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/codec/chunks.h"
#include "common/codec/decode_mode.h"
#include "common/status.h"

namespace syncopate::codec {

inline constexpr std::size_t kTopKChunk = 4096;  // elements: 12 bits

// Returns the bytes of `elements` values.
std::size_t top_k_2bit_size(std::size_t elements, const Tensors& tensors, double ratio);

// Fills `out`, of that size. Among equal magnitudes it takes those with the lower places. `scratch` is memory that the
// next call can reuse.
void encode_top_k_2bit(std::span<const float> values, const Tensors& tensors, double ratio,
                       std::vector<std::uint32_t>& scratch, std::span<std::byte> out);

// `encoded` must have that size. Fails with data loss, and leaves `out` unchanged, unless places ascend within their
// chunks and magnitudes are finite and not negative, or NaN. Elements that were not sent count as zero.
Status decode_top_k_2bit(std::span<const std::byte> encoded, const Tensors& tensors, double ratio, DecodeMode mode,
                         std::span<float> out);

}  // namespace syncopate::codec
