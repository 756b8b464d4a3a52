// Numbers of texts that people and peers write. Pure.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace syncopate {

// The number that `text` is from its first character to its last, in decimal; none if it is anything else, or if T
// cannot hold it. NaN and infinities are numbers here: who needs a range checks so that these fail.
template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [parsed_to, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || parsed_to != end) return std::nullopt;
  return value;
}

}  // namespace syncopate
