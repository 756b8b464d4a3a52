// A text as a cell of comma-separated values. Pure.
#pragma once

#include <string>
#include <string_view>

namespace syncopate::experiments {

// Returns `text` in quotes, in which quotes are doubled (RFC 4180).
inline std::string csv_text(std::string_view text) {
  std::string cell = "\"";
  for (const char c : text) {
    if (c == '"') cell += '"';
    cell += c;
  }
  return cell + "\"";
}

}  // namespace syncopate::experiments
