// Conversion of float32 to 16 bits and back: IEEE 754 binary16 (fp16), and bfloat16, the upper half of float32. Rounds
// to nearest, ties to even. Integer arithmetic, so that it vectorises on every processor, and rounds the same whether
// or not denormals are flushed.
#pragma once

#include <cstddef>
#include <span>

#include "common/codec/decode_mode.h"

namespace syncopate::codec {

// `out` has 2 bytes per value. NaN stays NaN, with the same sign. In fp16, magnitudes from 65520 on become infinite.
void encode_fp16(std::span<const float> values, std::span<std::byte> out);
void encode_bf16(std::span<const float> values, std::span<std::byte> out);

// `encoded` has 2 bytes for each value of `out`. Exact, since every 16-bit value is also a float32.
void decode_fp16(std::span<const std::byte> encoded, DecodeMode mode, std::span<float> out);
void decode_bf16(std::span<const std::byte> encoded, DecodeMode mode, std::span<float> out);

}  // namespace syncopate::codec
