// The k largest of a run of values by magnitude, as ascending indices and exact values (Aji and Heafield 2017, "Sparse
// communication for distributed gradient descent"; Lin et al. 2018, "Deep gradient compression", section 3.1, from
// which the threshold from a sample is).
//
//   | k indices, uint32, ascending | their k values, float32 |
//
// A sample of the values gives a threshold that about k, and hardly ever fewer, pass; only those that pass are then
// selected from. The result is exact whatever the sample was; a bad one costs time alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/codec/decode_into.h"
#include "common/status.h"

namespace syncopate::codec {

inline constexpr std::size_t kTopKBytes = sizeof(std::uint32_t) + sizeof(float);  // of each value that is sent

// Encodes out.size() / kTopKBytes of `values`. Of equal magnitudes, those with the lower indices. NaN counts as larger
// than infinity. `scratch` is memory that the next call can use again.
void encode_top_k(std::span<const float> values, std::vector<std::uint32_t>& scratch, std::span<std::byte> out);

// `encoded` has a multiple of kTopKBytes. Data loss, and `out` is left alone, unless indices ascend and are below
// out.size(). What was not sent counts as zero.
Status decode_top_k(std::span<const std::byte> encoded, Into into, std::span<float> out);

// Values that encode_top_k has just chosen become zero in `values`, of as many elements as what it was given.
void clear_sent(std::span<const std::byte> encoded, std::span<float> values);

}  // namespace syncopate::codec
