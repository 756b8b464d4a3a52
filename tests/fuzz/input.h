// Input: makes values of a harness's bytes, so that a few of them describe a conversation. Reading past the end gives
// zeros and nothing.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {

class Input {
 public:
  explicit Input(Bytes bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }

  template <typename T>
  T value() {
    T value{};
    const Bytes part = bytes(sizeof(T));
    if (!part.empty()) std::memcpy(&value, part.data(), part.size());
    return value;
  }
  std::uint8_t byte() { return value<std::uint8_t>(); }
  std::size_t below(std::size_t count) { return byte() % count; }
  bool coin() { return below(2) == 1; }

  // Mostly small, now and then any.
  std::uint64_t number() {
    const std::uint8_t first = byte();
    return first < 0xF0 ? first % 8 : value<std::uint64_t>();
  }

  // Up to so many bytes.
  Bytes bytes(std::size_t count) {
    const Bytes part = rest_.first(std::min(count, rest_.size()));
    rest_ = rest_.subspan(part.size());
    return part;
  }
  // As many as the next two bytes say.
  Bytes part() { return bytes(value<std::uint16_t>()); }
  Bytes rest() { return bytes(rest_.size()); }

 private:
  Bytes rest_;
};

inline std::string string_of(Bytes bytes) { return std::string(text_of(bytes)); }

}  // namespace syncopate::fuzz
