// Charts (chart.h) as text for a terminal: lines of braille dots or plain letters, bars of blocks. Pure.
//
// Each series has a letter, which stands at its points and before its name, so that series can be told apart without
// colours. Names stand at the right, as near to the ends of their lines as there is room, and below the plot if they
// are long. Error bars are upright lines through their points.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/report/chart.h"

namespace syncopate::experiments {

struct PlotStyle {
  int columns = 80;      // no line is wider, in characters; at least kFewestPlotColumns are taken
  int lines = 14;        // of a chart's plot area; at least kFewestPlotLines are taken
  bool unicode = false;  // braille, blocks and box drawing; otherwise ASCII, with "?" for other characters in names
  bool colour = false;   // by ANSI escapes, which have no width
};
inline constexpr int kFewestPlotColumns = 40, kFewestPlotLines = 4;

// What a program's environment says of the terminal; empty: the variable is not set.
struct TerminalFacts {
  int columns = 0;  // 0: standard output is no terminal
  std::string_view no_colour, term, lc_all, lc_ctype, lang;
};

// Colours on a terminal unless NO_COLOR is set (no-color.org) or TERM is dumb; Unicode where the first of LC_ALL,
// LC_CTYPE and LANG that is set names UTF-8 (POSIX's order). What is no terminal gets 80 columns; no plot is wider than
// 120.
PlotStyle plot_style(const TerminalFacts& facts);

// Return lines, each with its line feed: the title, the label of y, the plot with ticks, the label of x. A chart that
// shows nothing is its title and "nothing to draw".
std::string plot_of(const Chart& chart, const PlotStyle& style);
// One bar for each row, from zero to its value, with the value and its interval behind it. A reference within the bars'
// range is a mark.
std::string plot_of(const IntervalChart& chart, const PlotStyle& style);
// A line for each row: the parts of its bars, which are letters of their series where colours do not tell these apart,
// and how far they reach. What lies below zero is left out.
std::string plot_of(const BarChart& chart, const PlotStyle& style);

// Returns them below each other, with an empty line before each.
std::string plots_of(const std::vector<AnyChart>& charts, const PlotStyle& style);

}  // namespace syncopate::experiments
