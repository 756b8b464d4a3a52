#include "experiments/lab/report/text_table.h"

#include <algorithm>
#include <cassert>
#include <numeric>

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
  const std::size_t all = std::accumulate(widths.begin(), widths.end(), kBetween * (widths.size() - 1));
  const auto beside = [&](const std::string& cell) { return cell + std::string(widths[0] - width_of(cell), ' '); };
  if (cuts.empty() && all <= kMostWidth) return block(rows, widths, 1, widths.size(), beside);
  if (cuts.empty() && widths[0] > kLongName && all - widths[0] + kIndent - kBetween <= kMostWidth) {
    const auto above = [](const std::string& cell) { return cell + "\n" + std::string(kIndent - kBetween, ' '); };
    return block(rows, widths, 1, widths.size(), above);
  }
  const auto fits = [&](std::size_t column, std::size_t width) {
    return cuts.empty() ? width + kBetween + widths[column] <= kMostWidth
                        : std::ranges::find(cuts, rows[0][column]) == cuts.end();
  };
  std::string text;
  for (std::size_t begin = 1; begin < widths.size();) {
    std::size_t end = begin, width = widths[0];
    while (end < widths.size() && (end == begin || fits(end, width))) width += kBetween + widths[end++];
    text += (begin > 1 ? "\n" : "") + block(rows, widths, begin, end, beside);
    begin = end;
  }
  return text;
}

}  // namespace syncopate::experiments
