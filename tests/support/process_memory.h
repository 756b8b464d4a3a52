// What memory this process takes, by the kernel's account.
#pragma once

#include <cstddef>

namespace syncopate::testing_support {

// The most that was resident at once, in bytes (VmHWM of /proc/self/status). Memory that processes share counts whole
// in each that has touched it.
std::size_t peak_resident_bytes();

// Of what is resident now, in bytes: memory of other processes that this one only reads (mappings that are shared and
// not writable, from /proc/self/smaps).
std::size_t resident_bytes_of_peers();

}  // namespace syncopate::testing_support
