// Reads memory that another process may change at any time.
#pragma once

#include <cstring>
#include <type_traits>

namespace syncopate {

// A copy of the T at `from`, at any alignment. What is checked of it is what is used of it: the compiler does not look
// there again. Its bytes may be of different moments.
template <typename T>
T read_once(const void* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T copy;
  std::memcpy(&copy, from, sizeof(copy));
  asm volatile("" : : "r"(&copy) : "memory");
  return copy;
}

}  // namespace syncopate
