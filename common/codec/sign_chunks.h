// float32 to its sign, with one scale a chunk (chunks.h): value = ± scale, scale = mean |x| of the chunk. With error
// feedback this is EF-SGD with the scaled sign (Karimireddy et al. 2019, section 4; without, signSGD: Bernstein et al.
// 2018). A payload is words of 32 bits, the first value's bit lowest, set where the value is negative.
#pragma once

#include <cstddef>
#include <span>

#include "common/codec/chunks.h"
#include "common/codec/decode_into.h"
#include "common/status.h"

namespace syncopate::codec {

std::size_t sign_size(std::size_t elements, const Tensors& tensors = {});

// A chunk whose mean magnitude is not finite gets a NaN for its scale.
void encode_sign(std::span<const float> values, const Tensors& tensors, std::span<std::byte> out);

// `encoded` has sign_size(out.size(), tensors) bytes. Data loss, and `out` is left alone, if a scale is wrong. Bits
// beyond the last value mean nothing.
Status decode_sign(std::span<const std::byte> encoded, const Tensors& tensors, Into into, std::span<float> out);

}  // namespace syncopate::codec
