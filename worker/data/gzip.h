// Inflates a gzip stream (RFC 1952).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/status.h"

namespace syncopate::worker {

// The content of `compressed`, which must be one whole gzip stream and nothing after it. kDataLoss, saying what was
// found and at which byte, otherwise, and where the content would pass `limit` bytes; kResourceExhausted where memory
// ends.
Result<std::vector<std::uint8_t>> inflate_gzip(std::span<const std::uint8_t> compressed, std::size_t limit);

}  // namespace syncopate::worker
