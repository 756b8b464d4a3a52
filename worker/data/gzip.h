// Inflates a gzip stream (RFC 1952).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/status.h"

namespace syncopate::worker {

// Returns the content of `compressed`, which must be exactly one whole gzip stream. Otherwise fails with kDataLoss,
// saying what was found and at which byte, as it does if the content would exceed `limit` bytes. kResourceExhausted: no
// memory.
Result<std::vector<std::uint8_t>> inflate_gzip(std::span<const std::uint8_t> compressed, std::size_t limit);

}  // namespace syncopate::worker
