// Prefetches memory before it is needed.
#pragma once

#include <algorithm>
#include <cstddef>

namespace syncopate {

// Brings the first `bytes` after `begin`, at most 512, into the cache for reading and writing. The processor prefetches
// the rest of longer ranges by itself.
inline void prefetch(const void* begin, std::size_t bytes) {
  constexpr std::size_t kCacheLine = 64;
  constexpr std::size_t kMost = 512;
  const char* const at = static_cast<const char*>(begin);
  for (std::size_t offset = 0; offset < std::min(bytes, kMost); offset += kCacheLine)
    __builtin_prefetch(at + offset, 1);
}

}  // namespace syncopate
