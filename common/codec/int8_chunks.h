// float32 to 8 bits with one scale a chunk (chunks.h): value = scale · code, code from -127 to 127, scale = max|x| /
// 127. To nearest, ties to even: what is lost of a value is scale / 2 at most. Symmetric, so that zero stays zero.
#pragma once

#include <cstddef>
#include <span>

#include "common/codec/decode_into.h"
#include "common/status.h"

namespace syncopate::codec {

std::size_t int8_size(std::size_t elements);

// A chunk that holds NaN or an infinity gets a NaN for its scale. One whose largest magnitude is below 2^-100 becomes
// zero: it has no scale whose inverse is a float.
void encode_int8(std::span<const float> values, std::span<std::byte> out);

// `encoded` has int8_size(out.size()) bytes. Data loss, and `out` is left alone, if a scale is wrong. A code of -128,
// which encode_int8 does not make, counts as what it is.
Status decode_int8(std::span<const std::byte> encoded, Into into, std::span<float> out);

}  // namespace syncopate::codec
