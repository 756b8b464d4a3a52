#include "experiments/lab/report/plot_canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace syncopate::experiments {
namespace {

// The terminal's own colours, of which most schemes make six that can be told apart on dark and on light ground.
constexpr std::array kAnsiColours = {34, 31, 32, 35, 33, 36};
constexpr int kBrailleAcross = 2, kBrailleUp = 4;
// Bits of the dots of a braille character, by column and by row from below (Unicode, U+2800 to U+28FF).
constexpr std::uint8_t kBrailleDots[kBrailleAcross][kBrailleUp] = {{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}};

bool begins_character(char c) { return (c & 0xC0) != 0x80; }

std::string braille(std::uint8_t dots) {
  const unsigned code = 0x2800u + dots;
  return {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

}  // namespace

int columns_of(const std::string& text) { return static_cast<int>(std::ranges::count_if(text, begins_character)); }

std::string fitted(const std::string& text, int columns, bool unicode) {
  constexpr std::string_view kCut = "..";
  const bool is_cut = columns_of(text) > columns;
  const int kept = is_cut ? std::max(0, columns - static_cast<int>(kCut.size())) : columns;
  std::string shown;
  int count = 0;
  for (const char c : text) {
    if (begins_character(c) && ++count > kept) break;
    const bool is_ascii = static_cast<unsigned char>(c) < 0x80;
    if (unicode || is_ascii) {
      shown += c;
    } else if (begins_character(c)) {
      shown += '?';
    }
  }
  if (is_cut) shown += kCut.substr(0, static_cast<std::size_t>(std::clamp(columns, 0, 2)));
  return shown;
}

std::string coloured(const std::string& text, int colour, bool wanted) {
  if (!wanted || text.empty()) return text;
  return fmt::format("\x1b[{}m{}\x1b[0m", kAnsiColours[static_cast<std::size_t>(colour) % kAnsiColours.size()], text);
}

char letter_of(int series) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return kLetters[static_cast<std::size_t>(series) % kLetters.size()];
}

PlotCanvas::PlotCanvas(int columns, int lines, bool unicode, bool colour)
    : columns_(columns),
      lines_(lines),
      across_(unicode ? kBrailleAcross : 1),
      up_(unicode ? kBrailleUp : 1),
      unicode_(unicode),
      colour_(colour),
      cells_(static_cast<std::size_t>(columns) * static_cast<std::size_t>(lines)) {}

void PlotCanvas::dot(int x, int y, int series) {
  Cell& at = cell(x, y);
  at.dots = static_cast<std::uint8_t>(at.dots | (unicode_ ? kBrailleDots[x % kBrailleAcross][y % kBrailleUp] : 1));
  at.series = series;
}

// Bresenham 1965, "Algorithm for computer control of a digital plotter".
void PlotCanvas::line(int x1, int y1, int x2, int y2, int series) {
  const int across = std::abs(x2 - x1), up = -std::abs(y2 - y1);
  const int right = x1 < x2 ? 1 : -1, above = y1 < y2 ? 1 : -1;
  int error = across + up;
  while (true) {
    dot(x1, y1, series);
    if (x1 == x2 && y1 == y2) return;
    const int twice = 2 * error;
    if (twice >= up) error += up, x1 += right;
    if (twice <= across) error += across, y1 += above;
  }
}

void PlotCanvas::dashes(int y, int series) {
  const int dash = 3 * across_;
  for (int x = 0; x < dots_across(); ++x) {
    if (x / dash % 2 == 0) dot(x, y, series);
  }
}

void PlotCanvas::letter(int x, int y, int series) {
  Cell& at = cell(x, y);
  at.letter = letter_of(series);
  at.series = series;
}

std::string PlotCanvas::row(int row) const {
  std::string text;
  for (int column = 0; column < columns_; ++column) {
    const Cell& at = cells_[static_cast<std::size_t>(row * columns_ + column)];
    if (at.letter) {
      text += coloured(std::string(1, *at.letter), at.series, colour_);
    } else if (at.dots == 0) {
      text += ' ';
    } else {
      text += coloured(unicode_ ? braille(at.dots) : ".", at.series, colour_);
    }
  }
  return text;
}

}  // namespace syncopate::experiments
