// Reads memory that another process may change at any time.
#pragma once

#include <cstring>
#include <type_traits>

namespace syncopate {

// Returns a copy of the T at `from`, at any alignment. The compiler does not read that memory again, so the value that
// is checked is the value that is used. Its bytes may stem from different moments.
template <typename T>
T read_once(const void* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T copy;
  std::memcpy(&copy, from, sizeof(copy));
  asm volatile("" : : "r"(&copy) : "memory");
  return copy;
}

}  // namespace syncopate
