// Conversion of float32 to 8 bits with one scale per chunk (chunks.h): value = scale · code, code from -127 to 127,
// scale = max|x| / 127. Symmetric, so that zero stays zero.
//
// Rounding to nearest, ties to even, loses at most scale / 2 of a value, and always the same for the same value: a
// value that is small compared with the largest of its chunk is never sent. Stochastic rounding (Alistarh et al. 2017,
// "QSGD", section 3.1, with the largest magnitude in place of the norm) goes up or down, to either of the two codes
// around a value, with such probabilities that the expected value is the value, except for 2^-14 of the scale. It loses
// less than scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/codec/chunks.h"
#include "common/codec/decode_mode.h"
#include "common/status.h"

namespace syncopate::codec {

std::size_t int8_size(std::size_t elements, const Tensors& tensors = {});

// A chunk that holds NaN or an infinity gets a NaN for its scale. A chunk whose largest magnitude is below 2^-100
// becomes zero, since the inverse of its scale would not be a float.
void encode_int8(std::span<const float> values, const Tensors& tensors, std::span<std::byte> out);

// The same, but rounded stochastically with numbers drawn from `key`: the same result for the same values and key.
// Multiples of the scale stay exact.
void encode_int8_stochastic(std::span<const float> values, const Tensors& tensors, std::uint64_t key,
                            std::span<std::byte> out);

// `encoded` must have int8_size(out.size(), tensors) bytes. Fails with data loss, and leaves `out` unchanged, if a
// scale is invalid. A code of -128, which encode_int8 does not produce, is taken at face value.
Status decode_int8(std::span<const std::byte> encoded, const Tensors& tensors, DecodeMode mode, std::span<float> out);

}  // namespace syncopate::codec
