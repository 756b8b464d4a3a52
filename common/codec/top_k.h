// Top-k: the k largest values by magnitude, as ascending indices and exact values (Aji and Heafield 2017, "Sparse
// communication for distributed gradient descent"; Lin et al. 2018, "Deep gradient compression", section 3.1, from
// which the threshold from a sample is taken).
//
//   | k indices, uint32, ascending | their k values, float32 |
//
// A sample of the values gives a threshold that about k values pass, and hardly ever fewer; the selection is then among
// these. The result is exact whatever the sample was; a bad sample costs only time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/codec/decode_mode.h"
#include "common/status.h"

namespace syncopate::codec {

inline constexpr std::size_t kTopKBytes = sizeof(std::uint32_t) + sizeof(float);  // per value that is sent

// Encodes out.size() / kTopKBytes of `values`. Among equal magnitudes it takes those with the lower indices. NaN counts
// as larger than infinity. `scratch` is memory that the next call can reuse.
void encode_top_k(std::span<const float> values, std::vector<std::uint32_t>& scratch, std::span<std::byte> out);

// `encoded` must have a multiple of kTopKBytes. Fails with data loss, and leaves `out` unchanged, unless indices ascend
// and are below out.size(). Elements that were not sent count as zero.
Status decode_top_k(std::span<const std::byte> encoded, DecodeMode mode, std::span<float> out);

// Sets those elements of `values` to zero that encode_top_k has just chosen. `values` is as long as what encode_top_k
// was given.
void clear_sent(std::span<const std::byte> encoded, std::span<float> values);

}  // namespace syncopate::codec
