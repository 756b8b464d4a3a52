// What memory this process takes, by the kernel's account.
#pragma once

#include <cstddef>

namespace syncopate::testing_support {

// Returns how many of the bytes that are resident now are memory of other processes that this one only reads (mappings
// that are shared and not writable, from /proc/self/smaps).
std::size_t resident_bytes_of_peers();

}  // namespace syncopate::testing_support
