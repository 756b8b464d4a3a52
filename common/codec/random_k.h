// Random-k: encodes k of the values, drawn from a key that sender and receiver share, so that only the values are sent
// (random sparsification: Stich et al. 2018, "Sparsified SGD with memory", section 2; since all senders draw the same,
// their encodings can be added up: Vogels et al. 2019, "PowerSGD", section 4.3).
//
// The values, without the padding between tensors, are cut into k parts that differ by one element at most, and one
// element of each is drawn. So indices ascend, and each element's probability is k/n, up to that difference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/codec/chunks.h"
#include "common/codec/decode_mode.h"

namespace syncopate::codec {

inline constexpr std::size_t kRandomKBytes = sizeof(float);  // per value that is sent

// Encodes out.size() / kRandomKBytes of `values`, unscaled, since error feedback sends the rest later.
void encode_random_k(std::span<const float> values, const Tensors& tensors, std::uint64_t key,
                     std::span<std::byte> out);

// `encoded` has at most kRandomKBytes for each element of `out` that is no padding. Elements that were not sent count
// as zero.
void decode_random_k(std::span<const std::byte> encoded, const Tensors& tensors, std::uint64_t key, DecodeMode mode,
                     std::span<float> out);

}  // namespace syncopate::codec
