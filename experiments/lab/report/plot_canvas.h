// PlotCanvas: a grid of characters that lines are drawn on, as dots of braille or as letters. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace syncopate::experiments {

// Returns the first `columns` characters of a UTF-8 text; one that is cut ends with "..". Without `unicode` other
// characters than ASCII become "?".
std::string fitted(const std::string& text, int columns, bool unicode);
// Returns the number of characters of a UTF-8 text.
int columns_of(const std::string& text);
// Returns the text between the ANSI escapes of a series' colour, which begin again after the last.
std::string coloured(const std::string& text, int colour, bool wanted);

class PlotCanvas {
 public:
  PlotCanvas(int columns, int lines, bool unicode, bool colour);

  // Dots: positions that a line can take, more than one in a braille character.
  int dots_across() const { return columns_ * across_; }
  int dots_up() const { return lines_ * up_; }

  // x counts dots from the left, y from below; both must be on the canvas.
  void line(int x1, int y1, int x2, int y2, int series);
  void dashes(int y, int series);  // across the canvas
  void letter(int x, int y, int series);

  // Returns line `row` from above, without a line feed, as wide as the canvas.
  std::string row(int row) const;
  // Returns the row on which dot y lies.
  int row_of(int y) const { return lines_ - 1 - y / up_; }

 private:
  struct Cell {
    std::uint8_t dots = 0;  // of braille; ASCII: whether a line passes
    int series = 0;         // the last that was drawn here
    std::optional<char> letter = {};
  };
  Cell& cell(int x, int y) { return cells_[static_cast<std::size_t>(row_of(y) * columns_ + x / across_)]; }
  void dot(int x, int y, int series);

  const int columns_, lines_, across_, up_;
  const bool unicode_, colour_;
  std::vector<Cell> cells_;
};

// Returns a series' letter: a, b, ... z, A, ... Z, and from the beginning again.
char letter_of(int series);

}  // namespace syncopate::experiments
