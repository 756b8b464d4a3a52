// float32 to 8 bits with one scale a chunk (chunks.h): value = scale · code, code from -127 to 127, scale = max|x| /
// 127. Symmetric, so that zero stays zero.
//
// To nearest, ties to even: what is lost of a value is scale / 2 at most, and always the same of the same value: what
// is small beside the largest of its chunk is never sent. Or stochastic (Alistarh et al. 2017, "QSGD", section 3.1,
// with the largest magnitude in place of the norm): up or down, to either of the two codes around a value, so likely
// that the expected value is the value, but for 2^-14 of the scale. What is lost is below scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/codec/chunks.h"
#include "common/codec/decode_into.h"
#include "common/status.h"

namespace syncopate::codec {

std::size_t int8_size(std::size_t elements, const Tensors& tensors = {});

// A chunk that holds NaN or an infinity gets a NaN for its scale. One whose largest magnitude is below 2^-100 becomes
// zero: it has no scale whose inverse is a float.
void encode_int8(std::span<const float> values, const Tensors& tensors, std::span<std::byte> out);

// The same, but rounded stochastically, as drawn from `key`: the same for the same values and key. Multiples of the
// scale stay exact.
void encode_int8_stochastic(std::span<const float> values, const Tensors& tensors, std::uint64_t key,
                            std::span<std::byte> out);

// `encoded` has int8_size(out.size(), tensors) bytes. Data loss, and `out` is left alone, if a scale is wrong. A code
// of -128, which encode_int8 does not make, counts as what it is.
Status decode_int8(std::span<const std::byte> encoded, const Tensors& tensors, Into into, std::span<float> out);

}  // namespace syncopate::codec
