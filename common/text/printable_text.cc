#include "common/text/printable_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace syncopate {
namespace {

constexpr std::string_view kCut = "...";

// A character at the beginning of a text: no bytes of it where it is not UTF-8.
struct Character {
  std::size_t bytes = 0;
  std::uint32_t code = 0;
};

Character character_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, first};
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || bytes > text.size()) return {};
  std::uint32_t code = first & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // less has a shorter form
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < kLeast[bytes] || code > 0x10FFFF || is_surrogate ? Character{} : Character{bytes, code};
}

bool is_visible(std::uint32_t code) {
  const auto within = [code](std::uint32_t first, std::uint32_t last) { return code >= first && code <= last; };
  const bool is_control = code < 0x20 || within(0x7F, 0x9F);
  // Without width, separators of lines, marks and overrides of direction, tags, and what is no character at all.
  const bool is_hidden = code == 0xAD || code == 0x61C || within(0x200B, 0x200F) || within(0x2028, 0x202E) ||
                         within(0x2060, 0x206F) || code == 0xFEFF || within(0xFFF9, 0xFFFB) ||
                         within(0xE0000, 0xE0FFF) || (code & 0xFFFE) == 0xFFFE;
  return !is_control && !is_hidden;
}

std::string escaped(char c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
}

constexpr std::size_t kLongestLine = 1 << 14;

}  // namespace

std::string printable(std::string_view text, std::size_t longest) {
  std::string result;
  std::size_t fits = 0;  // of it, with kCut behind
  while (!text.empty()) {
    const Character next = character_at(text);
    const std::size_t bytes = std::max<std::size_t>(next.bytes, 1);
    if (next.bytes > 0 && is_visible(next.code)) {
      result += text.substr(0, bytes);
    } else {
      for (const char c : text.substr(0, bytes)) result += escaped(c);
    }
    text.remove_prefix(bytes);
    if (result.size() > longest) {
      result.resize(fits);
      return result.append(kCut.substr(0, longest - fits));
    }
    if (result.size() + kCut.size() <= longest) fits = result.size();
  }
  return result;
}

std::string printable_lines(std::string_view text) {
  std::string lines;
  for (;;) {
    const std::size_t end = text.find('\n');
    lines += printable(text.substr(0, end), kLongestLine);
    if (end == std::string_view::npos) return lines;
    lines += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string terminal_line(std::string_view line) {
  constexpr std::size_t kTab = 8;
  if (line.ends_with('\r')) line.remove_suffix(1);
  line.remove_prefix(line.rfind('\r') + 1);  // npos + 1 is 0
  std::string shown;
  std::size_t column = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const std::size_t end = line.substr(i).starts_with("\x1b[") ? line.find_first_not_of("0123456789;", i + 2) : 0;
    if (end > 0 && end < line.size() && line[end] == 'm') {
      i = end;
    } else if (line[i] == '\t') {
      shown.append(kTab - column % kTab, ' ');
      column += kTab - column % kTab;
    } else {
      shown += line[i];
      column += (static_cast<unsigned char>(line[i]) & 0xC0) != 0x80;
    }
  }
  return printable_lines(shown);
}

}  // namespace syncopate
