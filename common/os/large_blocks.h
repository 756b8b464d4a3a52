// Keeps the memory of large messages in the process.
#pragma once

namespace syncopate {

// Messages of megabytes come and go. By default the C library returns such blocks to the kernel and has every page
// faulted in anew; after this call blocks up to 32 MB (its upper limit) are kept and reused. For a process's main
// function.
void keep_large_blocks();

}  // namespace syncopate
