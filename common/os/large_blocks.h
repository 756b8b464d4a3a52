// Keeps the memory of large messages in the process.
#pragma once

namespace syncopate {

// Messages of megabytes are allocated and freed all the time. By default the C library returns such blocks to the
// kernel, and every page is faulted in anew. After this call blocks up to 32 MB (the C library's upper limit) are kept
// and reused. Call it in a process's main function.
void keep_large_blocks();

}  // namespace syncopate
