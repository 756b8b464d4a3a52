#include "experiments/lab/report/text_table.h"

#include <algorithm>
#include <cassert>

namespace syncopate::experiments {
namespace {

using Rows = std::vector<std::vector<std::string>>;
using Widths = std::vector<std::size_t>;

constexpr std::size_t kMostWidth = 80, kLongName = 32, kBetween = 2, kIndent = 4;

// Counts characters of UTF-8: all bytes that are not continuation bytes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

Widths widths_of(const Rows& rows) {
  Widths widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  return widths;
}

// Each row in a line: what `first` makes of its first cell, and the columns from `begin` until `end`.
template <typename First>
std::string block(const Rows& rows, const Widths& widths, std::size_t begin, std::size_t end, const First& first) {
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    assert(row.size() == widths.size());
    text += first(row[0]);
    for (std::size_t i = begin; i < end; ++i) {
      text += std::string(kBetween + widths[i] - width_of(row[i]), ' ') + row[i];
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string text_table(const Rows& rows, const std::vector<std::string>& cuts) {
  const Widths widths = widths_of(rows);
  if (widths.empty()) return "";
  const auto is_cut = [&](std::size_t column) { return std::ranges::find(cuts, rows[0][column]) != cuts.end(); };
  // The end of the columns from `begin` on that stand beside each other, behind so many characters.
  const auto end_of = [&](std::size_t begin, std::size_t width) {
    std::size_t end = begin;
    while (end < widths.size() && (end == begin || (!is_cut(end) && width + kBetween + widths[end] <= kMostWidth))) {
      width += kBetween + widths[end++];
    }
    return end;
  };
  bool fits = true;
  for (std::size_t column = 1, width = widths[0]; column < widths.size(); ++column) {
    if (column > 1 && is_cut(column)) width = widths[0];
    width += kBetween + widths[column];
    fits = fits && width <= kMostWidth;
  }
  const bool is_above = !fits && widths[0] > kLongName;
  const auto name = [&](const std::string& cell) {
    return is_above ? cell + "\n" + std::string(kIndent - kBetween, ' ')
                    : cell + std::string(widths[0] - width_of(cell), ' ');
  };
  if (widths.size() == 1) return block(rows, widths, 1, 1, name);
  std::string text;
  for (std::size_t begin = 1; begin < widths.size();) {
    const std::size_t end = end_of(begin, is_above ? kIndent - kBetween : widths[0]);
    text += (begin > 1 ? "\n" : "") + block(rows, widths, begin, end, name);
    begin = end;
  }
  return text;
}

}  // namespace syncopate::experiments
