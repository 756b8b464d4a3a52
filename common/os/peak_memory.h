// The peak memory of this process.
#pragma once

#include <cstdint>

namespace syncopate {

// Returns the peak of resident memory, in bytes (VmHWM of /proc/self/status); 0 if the kernel does not report it.
// Memory that processes share counts in full in each that has touched it.
std::int64_t peak_memory_bytes();

}  // namespace syncopate
