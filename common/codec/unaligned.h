// Reads and writes numbers in encoded bytes, at any alignment. Little endian, like the processors that this is built
// for.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>

namespace syncopate::codec {

static_assert(std::endian::native == std::endian::little);

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace syncopate::codec
