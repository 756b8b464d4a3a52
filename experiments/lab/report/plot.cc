#include "experiments/lab/report/plot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/text/printable_text.h"
#include "experiments/lab/report/plot_canvas.h"
#include "experiments/lab/report/plot_scale.h"

namespace syncopate::experiments {
namespace {

constexpr int kPlainColumns = 80, kMostPlotColumns = 120;
constexpr const char* kNothingToDraw = "  nothing to draw\n";
// Points of a line that are marked by a letter each; lines with more have one at their end.
constexpr std::size_t kMostLetters = 16;

std::string blanks(int count) { return std::string(static_cast<std::size_t>(std::max(0, count)), ' '); }

// Returns a line without the blanks at its end, with its line feed.
std::string ended_line(std::string text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text + "\n";
}

struct Scales {
  ChartScale x, y;
  bool show(const ChartSeries& series, const ChartPoint& point) const {
    return y.shows(point.y) && (series.is_level || x.shows(point.x));
  }
};

Scales scales_of(const Chart& chart) {
  std::vector<double> across, up;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      if (!series.is_level) across.push_back(point.x);
      up.push_back(point.y);
      if (point.low && point.high) up.insert(up.end(), {*point.low, *point.high});
    }
  }
  return {ChartScale(chart.x, across), ChartScale(chart.y, up)};
}

int dot_at(double fraction, int dots) { return static_cast<int>(std::lround(fraction * (dots - 1))); }

// A series as it is drawn: its number among those that are, and the dot at which its line ends.
struct Drawn {
  std::string name;
  int number = 0;
  int end = 0;
};

Drawn draw(const ChartSeries& series, int number, const Scales& scales, PlotCanvas& canvas) {
  struct Dot {
    int x = 0, y = 0;
  };
  std::vector<Dot> dots;
  for (const ChartPoint& point : series.points) {
    if (!scales.show(series, point)) continue;
    const int y = dot_at(scales.y.fraction(point.y), canvas.dots_up());
    dots.push_back({series.is_level ? 0 : dot_at(scales.x.fraction(point.x), canvas.dots_across()), y});
    const bool has_bar = point.low && point.high && scales.y.shows(*point.low) && scales.y.shows(*point.high);
    if (has_bar && !series.is_level) {
      const auto height = [&](double value) { return dot_at(scales.y.fraction(value), canvas.dots_up()); };
      canvas.line(dots.back().x, height(*point.low), dots.back().x, height(*point.high), number);
    }
    if (series.is_level) break;
  }
  if (series.is_level) canvas.dashes(dots.front().y, number);
  for (std::size_t i = 1; series.joined && i < dots.size(); ++i) {
    canvas.line(dots[i - 1].x, dots[i - 1].y, dots[i].x, dots[i].y, number);
  }
  const bool has_all = !series.joined || dots.size() <= kMostLetters;
  for (std::size_t i = 0; i < dots.size(); ++i) {
    const bool is_last = i + 1 == dots.size();
    if (!series.is_level && (is_last || (series.marked && has_all))) canvas.letter(dots[i].x, dots[i].y, number);
  }
  return {series.name, number, dots.back().y};
}

// Returns the row of each name: that of its line's end, or the next one that is free, above or below. Empty where rows
// do not suffice.
std::vector<std::optional<int>> rows_of_names(const std::vector<Drawn>& drawn, const PlotCanvas& canvas, int rows) {
  std::vector<std::optional<int>> places;
  std::vector<bool> taken(static_cast<std::size_t>(rows));
  for (const Drawn& one : drawn) {
    const int wanted = canvas.row_of(one.end);
    std::optional<int> place;
    for (int away = 0; away < rows && !place; ++away) {
      for (const int row : {wanted - away, wanted + away}) {
        if (place || row < 0 || row >= rows || taken[static_cast<std::size_t>(row)]) continue;
        place = row;
        taken[static_cast<std::size_t>(row)] = true;
      }
    }
    places.push_back(place);
  }
  return places;
}

// The line below the plot with the ticks' values, each centred on its tick where there is room.
std::string values_below(const ChartScale& scale, int columns) {
  std::string text;
  for (const double value : scale.tick_values()) {
    const std::string label = tick_text(value);
    const int width = columns_of(label), used = columns_of(text);
    const int wanted = dot_at(scale.fraction(value), columns) - width / 2;
    const int at = std::min(std::max(wanted, 0), columns - width);
    if (at < 0 || (used > 0 && at < used + 1)) continue;
    text += blanks(at - used) + label;
  }
  return text;
}

int clamped_columns(const PlotStyle& style) { return std::max(style.columns, kFewestPlotColumns); }

std::string headed(const std::string& title, const PlotStyle& style) {
  return ended_line(fitted(printable(title), clamped_columns(style), style.unicode));
}

// Returns a series' letter and its name, of which there is as much as fits; none in one column.
std::string fitted_name(const Drawn& drawn, int columns, const PlotStyle& style) {
  std::string text(1, letter_of(drawn.number));
  if (columns > 2) text += " " + fitted(printable(drawn.name), columns - 2, style.unicode);
  return coloured(text, drawn.number, style.colour);
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// Takes the words that all names have out of them, and returns them: they would take the room of what distinguishes the
// names. Changes nothing where a name would be left empty.
std::string take_shared_words(const std::vector<std::string*>& names) {
  if (names.size() < 2) return {};
  std::vector<std::string> shared;
  for (const std::string& word : words_of(*names.front())) {
    const bool have_all = std::ranges::all_of(names, [&](const std::string* name) {
      const std::vector<std::string> words = words_of(*name);
      return std::ranges::find(words, word) != words.end();
    });
    if (have_all) shared.push_back(word);
  }
  std::vector<std::string> rests;
  for (const std::string* name : names) {
    std::vector<std::string> rest = words_of(*name);
    std::erase_if(rest, [&](const std::string& word) { return std::ranges::find(shared, word) != shared.end(); });
    if (rest.empty()) return {};
    rests.push_back(fmt::format("{}", fmt::join(rest, " ")));
  }
  for (std::size_t i = 0; i < names.size(); ++i) *names[i] = rests[i];
  return fmt::format("{}", fmt::join(shared, " "));
}

// Returns the title over names of which these words have been taken out.
std::string title_with(const std::string& title, const std::string& shared) {
  return shared.empty() ? title : fmt::format("{} ({})", title, shared);
}

bool is_utf8_locale(std::string_view name) {
  std::string lower;
  for (const char c : name) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
}

// A part of a bar; with a letter it is drawn as such, otherwise as blocks.
struct PlottedPart {
  double from = 0, to = 0;
  int colour = 0;
  std::optional<char> letter = {};
};

struct PlottedBar {
  std::string name;
  std::vector<PlottedPart> parts;  // from zero on
  double value = 0;                // shown behind it
  std::string interval = {};       // and behind that
};

std::string figure_of(const PlottedBar& bar) { return tick_text(bar.value) + bar.interval; }

// Returns a block of `eighths` of a column.
std::string block_of(int eighths, const PlotStyle& style) {
  constexpr const char* kBlocks[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!style.unicode) return std::string(static_cast<std::size_t>((eighths + 4) / 8), '#');
  std::string block;
  for (int i = 0; i < eighths / 8; ++i) block += "█";
  return block + kBlocks[eighths % 8];
}

struct DrawnBar {
  std::string text;
  int columns = 0;
};

// Draws the parts from left to right; `scale` is columns for each unit.
DrawnBar drawn_bar(const PlottedBar& bar, double scale, const PlotStyle& style) {
  DrawnBar drawn;
  for (const PlottedPart& part : bar.parts) {
    const int begin = std::max(drawn.columns, static_cast<int>(std::lround(std::max(0.0, part.from) * scale)));
    const int eighths = static_cast<int>(std::lround(std::max(0.0, part.to) * scale * 8)) - 8 * begin;
    if (eighths <= 0) continue;
    const std::string piece =
        part.letter ? std::string(static_cast<std::size_t>((eighths + 4) / 8), *part.letter) : block_of(eighths, style);
    drawn.text += blanks(begin - drawn.columns) + coloured(piece, part.colour, style.colour);
    drawn.columns = begin + columns_of(piece);
  }
  return drawn;
}

int widest_figure(const std::vector<PlottedBar>& bars) {
  int widest = 0;
  for (const PlottedBar& bar : bars) widest = std::max(widest, columns_of(figure_of(bar)));
  return widest;
}

std::string plot_of_bars(const std::string& title, const std::string& axis, std::vector<PlottedBar> bars,
                         double reference, const PlotStyle& style) {
  constexpr int kFewestBarColumns = 12;
  if (bars.empty()) return headed(title, style) + kNothingToDraw;
  const auto widest_name = [&] {
    int widest = 0;
    for (const PlottedBar& bar : bars) widest = std::max(widest, columns_of(printable(bar.name)));
    return widest;
  };
  std::string shared;
  if (widest_name() > clamped_columns(style) / 2) {
    std::vector<std::string*> all;
    for (PlottedBar& bar : bars) all.push_back(&bar.name);
    shared = take_shared_words(all);
  }
  std::string text = headed(title_with(title, shared), style);
  double most = 0;
  for (const PlottedBar& bar : bars) most = std::max(most, bar.value);
  const int names = std::min(widest_name(), clamped_columns(style) / 2);
  const auto left = [&] { return clamped_columns(style) - names - 2 - 1 - widest_figure(bars); };
  if (left() < kFewestBarColumns) {
    for (PlottedBar& bar : bars) bar.interval.clear();
  }
  const int across = left();
  const double scale = most > 0 ? across / most : 0;
  const bool has_mark = reference > 0 && reference <= most;
  const int mark = has_mark ? std::clamp(static_cast<int>(std::lround(reference * scale)) - 1, 0, across - 1) : -1;
  text += headed(axis, style);
  for (const PlottedBar& bar : bars) {
    const DrawnBar drawn = drawn_bar(bar, scale, style);
    std::string behind = blanks(across - drawn.columns);
    if (mark >= drawn.columns) {
      behind.replace(static_cast<std::size_t>(mark - drawn.columns), 1, style.unicode ? "┊" : ":");
    }
    const std::string name = fitted(printable(bar.name), names, style.unicode);
    text += ended_line(fmt::format("{}{} {}{}{} {}", name, blanks(names - columns_of(name)), style.unicode ? "│" : "|",
                                   drawn.text, behind, figure_of(bar)));
  }
  return text;
}

}  // namespace

PlotStyle plot_style(const TerminalFacts& facts) {
  const std::string_view locale = !facts.lc_all.empty()     ? facts.lc_all
                                  : !facts.lc_ctype.empty() ? facts.lc_ctype
                                                            : facts.lang;
  const bool is_terminal = facts.columns > 0;
  return {.columns = is_terminal ? std::clamp(facts.columns, kFewestPlotColumns, kMostPlotColumns) : kPlainColumns,
          .unicode = is_utf8_locale(locale),
          .colour = is_terminal && facts.no_colour.empty() && facts.term != "dumb"};
}

std::string plot_of(const Chart& chart, const PlotStyle& style) {
  const int columns = clamped_columns(style), lines = std::max(style.lines, kFewestPlotLines);
  const Scales scales = scales_of(chart);
  std::vector<const ChartSeries*> shown;
  for (const ChartSeries& series : chart.series) {
    const auto is_shown = [&](const ChartPoint& point) { return scales.show(series, point); };
    if (std::ranges::any_of(series.points, is_shown)) shown.push_back(&series);
  }
  if (shown.empty()) return headed(chart.title, style) + kNothingToDraw;

  int before = 0;
  for (const double value : scales.y.tick_values()) before = std::max(before, columns_of(tick_text(value)));
  std::vector<std::string> brief;
  for (const ChartSeries* series : shown) brief.push_back(series->name);
  const auto widest_name = [&] {
    int widest = 0;
    for (const std::string& name : brief) widest = std::max(widest, columns_of(printable(name)) + 2);
    return widest;
  };
  std::string shared;
  if (widest_name() > columns / 3) {
    std::vector<std::string*> all;
    for (std::string& name : brief) all.push_back(&name);
    shared = take_shared_words(all);
  }
  std::string text = headed(title_with(chart.title, shared), style);
  int names = widest_name();
  const bool has_legend = names > columns / 3;  // below the plot; letters alone stand at the ends of lines
  if (has_legend) names = 1;
  const int across = columns - before - 2 - 1 - names;
  PlotCanvas canvas(across, lines, style.unicode, style.colour);
  std::vector<Drawn> drawn;
  for (const ChartSeries* series : shown) {
    drawn.push_back(draw(*series, static_cast<int>(drawn.size()), scales, canvas));
    drawn.back().name = brief[drawn.size() - 1];
  }

  std::vector<std::string> ticks(static_cast<std::size_t>(lines));
  for (const double value : scales.y.tick_values()) {
    const int row = canvas.row_of(dot_at(scales.y.fraction(value), canvas.dots_up()));
    ticks[static_cast<std::size_t>(row)] = tick_text(value);
  }
  const std::vector<std::optional<int>> places = rows_of_names(drawn, canvas, lines);
  text += headed(chart.y.label, style);
  for (int row = 0; row < lines; ++row) {
    const std::string& tick = ticks[static_cast<std::size_t>(row)];
    const char* const axis = style.unicode ? (tick.empty() ? "│" : "┤") : (tick.empty() ? "|" : "+");
    std::string line = fmt::format("{}{} {}{}", blanks(before - columns_of(tick)), tick, axis, canvas.row(row));
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      if (places[i] == row) line += " " + fitted_name(drawn[i], names, style);
    }
    text += ended_line(line);
  }
  std::string axis;
  for (int i = 0; i < across; ++i) axis += style.unicode ? "─" : "-";
  text += blanks(before + 1) + (style.unicode ? "└" : "+") + axis + "\n";
  text += ended_line(blanks(before + 2) + values_below(scales.x, across));
  const std::string label = fitted(printable(chart.x.label), across, style.unicode);
  text += ended_line(blanks(before + 2 + (across - columns_of(label)) / 2) + label);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    if (has_legend || !places[i]) text += ended_line("  " + fitted_name(drawn[i], columns - 2, style));
  }
  return text;
}

std::string plot_of(const IntervalChart& chart, const PlotStyle& style) {
  std::vector<PlottedBar> bars;
  for (const IntervalRow& row : chart.rows) {
    if (!std::isfinite(row.value)) continue;
    bars.push_back({row.name, {{.to = row.value, .colour = row.colour}}, row.value});
    if (row.low && row.high) bars.back().interval = fmt::format(" [{}, {}]", tick_text(*row.low), tick_text(*row.high));
  }
  return plot_of_bars(chart.title, chart.axis, std::move(bars), chart.reference, style);
}

std::string plot_of(const BarChart& chart, const PlotStyle& style) {
  // Letters tell the parts of a bar from each other; a bar of one part needs none.
  const auto parts_of = [&](const std::string& row) {
    return std::ranges::count_if(chart.series, [&](const BarSeries& series) {
      return std::ranges::any_of(series.bars, [&](const Bar& bar) { return bar.row == row; });
    });
  };
  const bool has_legend = std::ranges::any_of(chart.rows, [&](const std::string& row) { return parts_of(row) > 1; });
  std::vector<PlottedBar> bars;
  for (const std::string& name : chart.rows) {
    PlottedBar bar{.name = name, .parts = {}, .value = 0};
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
      for (const Bar& one : chart.series[i].bars) {
        if (one.row != name || !std::isfinite(one.from) || !std::isfinite(one.to)) continue;
        const int number = static_cast<int>(i);
        bar.parts.push_back({one.from, one.to, has_legend ? number : chart.series[i].colour,
                             has_legend ? std::optional(letter_of(number)) : std::nullopt});
        bar.value = std::max({bar.value, one.from, one.to});
      }
    }
    if (!bar.parts.empty()) bars.push_back(std::move(bar));
  }
  std::string text = plot_of_bars(chart.title, chart.axis.label, bars, 0, style);
  for (std::size_t i = 0; has_legend && !bars.empty() && i < chart.series.size(); ++i) {
    const int number = static_cast<int>(i);
    const std::string name = fitted(printable(chart.series[i].name), clamped_columns(style) - 4, style.unicode);
    text += "  " + coloured(fmt::format("{} {}", letter_of(number), name), number, style.colour) + "\n";
  }
  return text;
}

std::string plots_of(const std::vector<AnyChart>& charts, const PlotStyle& style) {
  std::string text;
  for (const AnyChart& chart : charts) {
    text += "\n" + std::visit([&](const auto& one) { return plot_of(one, style); }, chart);
  }
  return text;
}

}  // namespace syncopate::experiments
