// A text as a cell of comma-separated values. Pure.
#pragma once

#include <string>
#include <string_view>

namespace syncopate::experiments {

// Returns `text` in quotes, in which quotes are doubled (RFC 4180). One that a spreadsheet would run as a formula,
// since it begins with = + - @, a tabulator or a line's end, begins with an apostrophe (OWASP, CSV Injection).
inline std::string csv_text(std::string_view text) {
  std::string cell = "\"";
  if (!text.empty() && std::string_view("=+-@\t\r\n").find(text.front()) != std::string_view::npos) cell += '\'';
  for (const char c : text) {
    if (c == '"') cell += '"';
    cell += c;
  }
  return cell + "\"";
}

}  // namespace syncopate::experiments
