// ReceiveBuffers: a receive buffer for each rank, as large as the most that the rank has sent so far.
#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <vector>

#include "common/os/aligned_buffer.h"

namespace syncopate::allreduce {

class ReceiveBuffers {
 public:
  explicit ReceiveBuffers(int ranks) : buffers_(static_cast<std::size_t>(ranks)) {}

  // Returns memory that begins on a cache line. It replaces what was last taken for `rank`.
  std::span<std::byte> take(int rank, std::size_t bytes) {
    AlignedBuffer& buffer = buffers_[static_cast<std::size_t>(rank)];
    const std::size_t floats = (bytes + sizeof(float) - 1) / sizeof(float);
    if (floats > buffer.size()) buffer = AlignedBuffer(std::bit_ceil(floats));
    return std::as_writable_bytes(buffer.span()).first(bytes);
  }

 private:
  std::vector<AlignedBuffer> buffers_;  // by rank
};

}  // namespace syncopate::allreduce
