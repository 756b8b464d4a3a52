// Parses numbers in texts from people and peers. Pure.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace syncopate {

// Returns the decimal number that is the whole of `text`; none if it is anything else, or if T cannot hold it. NaN and
// infinities are accepted: a caller that needs a range must check it so that these fail.
template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [parsed_to, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || parsed_to != end) return std::nullopt;
  return value;
}

}  // namespace syncopate
