// Divides a text at a separator.
#pragma once

#include <string_view>
#include <vector>

namespace syncopate {

// Returns the parts between separators: one more than there are separators, of which any may be empty.
inline std::vector<std::string_view> split_text(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace syncopate
