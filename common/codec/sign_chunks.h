// Conversion of float32 to its sign, with one scale per chunk (chunks.h): value = ± scale, scale = mean |x| of the
// chunk. With error feedback this is EF-SGD with the scaled sign (Karimireddy et al. 2019, section 4; without, signSGD:
// Bernstein et al. 2018). A payload consists of 32-bit words, with the first value's bit lowest; a bit is set if the
// value is negative.
#pragma once

#include <cstddef>
#include <span>

#include "common/codec/chunks.h"
#include "common/codec/decode_mode.h"
#include "common/status.h"

namespace syncopate::codec {

std::size_t sign_size(std::size_t elements, const Tensors& tensors = {});

// A chunk whose mean magnitude is not finite gets a NaN for its scale.
void encode_sign(std::span<const float> values, const Tensors& tensors, std::span<std::byte> out);

// `encoded` must have sign_size(out.size(), tensors) bytes. Fails with data loss, and leaves `out` unchanged, if a
// scale is invalid. Bits after the last value are ignored.
Status decode_sign(std::span<const std::byte> encoded, const Tensors& tensors, DecodeMode mode, std::span<float> out);

}  // namespace syncopate::codec
