// The memory of this process: what it keeps, and its peak.
#pragma once

#include <cstdint>

namespace syncopate {

// Messages of megabytes are allocated and freed all the time. By default the C library returns such blocks to the
// kernel, and every page is faulted in anew. After this call blocks up to 32 MB (the C library's upper limit) are kept
// and reused. Call it in a process's main function.
void keep_large_blocks();

// Returns the peak of resident memory, in bytes (VmHWM of /proc/self/status); 0 if the kernel does not report it.
// Memory that processes share counts in full in each that has touched it.
std::int64_t peak_memory_bytes();

}  // namespace syncopate
