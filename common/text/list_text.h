// Lists for people: "sync, bounded:k or async".
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace syncopate {

// Joins `items` with commas, and the last two with `conjunction`, as in "a, b or c".
inline std::string list_text(std::span<const std::string> items, std::string_view conjunction) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0 && i + 1 < items.size()) text += ", ";
    if (i > 0 && i + 1 == items.size()) text.append(" ").append(conjunction).append(" ");
    text += items[i];
  }
  return text;
}

}  // namespace syncopate
