// How much memory this process has needed.
#pragma once

#include <cstdint>

namespace syncopate {

// The most that was resident at once, in bytes (VmHWM of /proc/self/status); 0 where the kernel does not tell. Memory
// that processes share counts whole in each that has touched it.
std::int64_t peak_memory_bytes();

}  // namespace syncopate
