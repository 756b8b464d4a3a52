// k of a run of values, drawn from a key that sender and receiver share, so that only the values travel (random
// sparsification: Stich et al. 2018, "Sparsified SGD with memory", section 2; the shared draw makes encodings of
// several senders sums of each other: Vogels et al. 2019, "PowerSGD", section 4.3).
//
// The run is cut into k parts that differ by one element at most, and one element of each is drawn: indices ascend, and
// each element's chance is k/n but for that one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/codec/decode_into.h"

namespace syncopate::codec {

inline constexpr std::size_t kRandomKBytes = sizeof(float);  // of each value that is sent

// Encodes out.size() / kRandomKBytes of `values`, unscaled: error feedback sends the rest later.
void encode_random_k(std::span<const float> values, std::uint64_t key, std::span<std::byte> out);

// `encoded` has at most kRandomKBytes for each element of `out`. What was not sent counts as zero.
void decode_random_k(std::span<const std::byte> encoded, std::uint64_t key, Into into, std::span<float> out);

}  // namespace syncopate::codec
