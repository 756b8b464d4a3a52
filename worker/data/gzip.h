// Inflates gzip files (RFC 1952) and deflated entries of archives (RFC 1951).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/status.h"

namespace syncopate::worker {

// Returns the content of `compressed`, which must be exactly one or more whole gzip streams, one behind the other, as
// gzip has it of files that were appended to each other. Otherwise fails with kDataLoss, saying what was found and at
// which byte, as it does if the content would exceed `limit` bytes. kResourceExhausted: no memory.
Result<std::vector<std::uint8_t>> inflate_gzip(std::span<const std::uint8_t> compressed, std::size_t limit);

// Returns the same of one deflated stream without a header.
Result<std::vector<std::uint8_t>> inflate_deflated(std::span<const std::uint8_t> compressed, std::size_t limit);

}  // namespace syncopate::worker
