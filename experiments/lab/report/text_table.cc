#include "experiments/lab/report/text_table.h"

#include <algorithm>
#include <cassert>

namespace syncopate::experiments {
namespace {

// Counts characters of UTF-8: all bytes that are not continuation bytes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string text_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    assert(row.size() == widths.size());
    const auto blanks = [&](std::size_t i) { return std::string(widths[i] - width_of(row[i]), ' '); };
    text += row[0] + blanks(0);
    for (std::size_t i = 1; i < row.size(); ++i) text += "  " + blanks(i) + row[i];
    text += "\n";
  }
  return text;
}

}  // namespace syncopate::experiments
