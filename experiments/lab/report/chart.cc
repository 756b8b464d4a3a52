#include "experiments/lab/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "experiments/lab/report/chart_scale.h"
#include "experiments/lab/report/html_text.h"

namespace syncopate::experiments {
namespace {

// Units that a narrow screen shows at two thirds of their size, so that letters stay legible there.
constexpr double kWidth = 480, kPlotHeight = 230, kLeft = 66, kRight = 16, kTop = 34, kBottom = 46;
constexpr double kLegendLine = 19, kLetter = 6.6, kRowHeight = 24;
constexpr std::array kColours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                 "#E69F00", "#56B4E9", "#000000", "#B8A900"};
constexpr int kMarkers = 8;

const char* colour_of(int number) { return kColours[static_cast<std::size_t>(number) % kColours.size()]; }

double width_of(const std::string& text) { return kLetter * static_cast<double>(text.size()); }

std::string text_at(double x, double y, const char* anchor, const std::string& text, const std::string& more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more,
                     html_text(text));
}

std::string line_between(double x1, double y1, double x2, double y2, const std::string& more) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, more);
}

std::string stroke(const char* colour, double width) {
  return fmt::format("stroke=\"{}\" stroke-width=\"{}\"", colour, width);
}

// A shape around (x, y), with a tooltip.
std::string mark(double x, double y, int marker, const char* colour, const std::string& tip) {
  const auto path = [&](const std::string& moves, bool filled) {
    return fmt::format(
        "<path class=\"mark\" d=\"M{:.1f} {:.1f} {}\" {}>", x, y, moves,
        filled ? fmt::format("fill=\"{}\"", colour) : fmt::format("fill=\"none\" {}", stroke(colour, 2)));
  };
  std::string shape;
  switch (marker % kMarkers) {
    case 0:
      shape = path("m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0", true);  // circle
      break;
    case 1:
      shape = path("m-3.3 -3.3h6.6v6.6h-6.6z", true);  // square
      break;
    case 2:
      shape = path("m0 -4.6l4.4 8h-8.8z", true);  // triangle
      break;
    case 3:
      shape = path("m0 -5l4.4 5l-4.4 5l-4.4 -5z", true);  // diamond
      break;
    case 4:
      shape = path("m0 4.6l4.4 -8h-8.8z", true);  // triangle that stands on its tip
      break;
    case 5:
      shape = path("m-4 0h8m-4 -4v8", false);  // plus
      break;
    case 6:
      shape = path("m-3.5 -3.5l7 7m0 -7l-7 7", false);  // cross
      break;
    default:
      shape = path("m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0", false);  // ring
  }
  return shape + fmt::format("<title>{}</title></path>\n", html_text(tip));
}

std::string begin_svg(double height, const std::string& title) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1:.0f}\" width=\"{0}\" height=\"{1:.0f}\" "
             "font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<rect width=\"{0}\" height=\"{1:.0f}\" "
             "fill=\"white\"/>\n",
             kWidth, height) +
         text_at(8, 20, "start", title, " font-weight=\"bold\" font-size=\"13\"");
}

struct Frame {
  ChartScale x, y;
  double left(double value) const { return kLeft + x.fraction(value) * (kWidth - kLeft - kRight); }
  double top(double value) const { return kTop + (1 - y.fraction(value)) * kPlotHeight; }
  bool shows(const ChartSeries& series, const ChartPoint& point) const {
    return y.shows(point.y) && (series.is_level || x.shows(point.x));
  }
};

Frame frame_of(const Chart& chart) {
  std::vector<double> across, up;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      if (!series.is_level) across.push_back(point.x);
      up.push_back(point.y);
      // An interval whose bounds are not on the axis ends at its edge.
      for (const std::optional<double>& bound : {point.low, point.high}) {
        if (bound && (*bound > 0 || !(chart.y.logarithmic || chart.y.from_zero))) up.push_back(*bound);
      }
    }
  }
  return {ChartScale(chart.x, across), ChartScale(chart.y, up)};
}

bool has_something(const ChartSeries& series, const Frame& frame) {
  return std::ranges::any_of(series.points, [&](const ChartPoint& point) { return frame.shows(series, point); });
}

std::string grid(const Chart& chart, const Frame& frame) {
  constexpr double kRightEdge = kWidth - kRight, kBase = kTop + kPlotHeight;
  const std::string pale = stroke("#ddd", 1);
  std::string svg;
  double free_from = 0;  // the next label below the axis may begin here
  for (const double value : frame.x.tick_values()) {
    const double x = frame.left(value), half = width_of(tick_text(value)) / 2;
    svg += line_between(x, kTop, x, kBase, pale);
    if (x - half < free_from) continue;
    svg += text_at(x, kBase + 16, "middle", tick_text(value), " class=\"tick\"");
    free_from = x + half + 6;
  }
  for (const double value : frame.y.tick_values()) {
    const double y = frame.top(value);
    svg += line_between(kLeft, y, kRightEdge, y, pale);
    svg += text_at(kLeft - 6, y + 4, "end", tick_text(value), " class=\"tick\"");
  }
  svg += text_at((kLeft + kRightEdge) / 2, kBase + 36, "middle", chart.x.label);
  const double middle = kTop + kPlotHeight / 2;
  svg += text_at(14, middle, "middle", chart.y.label, fmt::format(" transform=\"rotate(-90 14 {:.1f})\"", middle));
  return svg + fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888\"/>\n",
                           kLeft, kTop, kWidth - kLeft - kRight, kPlotHeight);
}

// Places: the positions of labels and marks, so that none is printed over another.
class Places {
 public:
  void take(double left, double top, double right, double bottom) { boxes_.push_back({left, top, right, bottom}); }

  // Places `text` beside (x, y), if there is space; else returns nothing.
  std::string label(double x, double y, const std::string& text) {
    const double width = width_of(text), height = 12;
    const struct {
      double left, base;
    } tries[] = {{x + 7, y + 4}, {x - 7 - width, y + 4}, {x - width / 2, y - 8}, {x - width / 2, y + 17},
                 {x + 7, y - 8}, {x + 7, y + 16},        {x - 7 - width, y - 8}, {x - 7 - width, y + 16}};
    for (const auto& [left, base] : tries) {
      const Box box{left, base - height + 2, left + width, base + 2};
      if (box.left < kLeft + 2 || box.right > kWidth - kRight - 2) continue;
      if (box.top < kTop || box.bottom > kTop + kPlotHeight) continue;
      if (std::ranges::any_of(boxes_, [&](const Box& other) { return overlap(box, other); })) continue;
      boxes_.push_back(box);
      return text_at(left, base, "start", text);
    }
    return {};
  }

 private:
  struct Box {
    double left, top, right, bottom;
  };
  static bool overlap(const Box& one, const Box& other) {
    return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
  }
  std::vector<Box> boxes_;
};

std::string error_bar(double x, double low, double high, const char* colour) {
  const std::string thin = stroke(colour, 1.2) + " class=\"interval\"";
  return line_between(x, low, x, high, thin) + line_between(x - 3, low, x + 3, low, thin) +
         line_between(x - 3, high, x + 3, high, thin);
}

std::string series_lines(const ChartSeries& series, const Frame& frame) {
  const char* const colour = colour_of(series.colour);
  std::string svg, path;
  for (const ChartPoint& point : series.points) {
    if (!frame.shows(series, point)) continue;
    const double y = frame.top(point.y);
    if (series.is_level) {
      svg +=
          line_between(kLeft, y, kWidth - kRight, y, stroke(colour, 1.4) + " stroke-dasharray=\"6 3\" class=\"level\"");
      break;
    }
    const double x = frame.left(point.x);
    if (series.joined) path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x, y);
    if (point.low && point.high) svg += error_bar(x, frame.top(*point.low), frame.top(*point.high), colour);
  }
  if (!path.empty()) svg += fmt::format("<path d=\"{}\" fill=\"none\" {}/>\n", path, stroke(colour, 1.6));
  return svg;
}

// The largest number of points of a line that have a mark.
constexpr std::size_t kMarksOfALine = 30;

std::string series_marks(const ChartSeries& series, const Frame& frame, Places& places) {
  if (!series.marked) return {};
  const std::size_t each = series.joined ? series.points.size() / kMarksOfALine + 1 : 1;
  std::string svg;
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const ChartPoint& point = series.points[i];
    if (!frame.shows(series, point) || (i % each != 0 && i + 1 != series.points.size())) continue;
    const double x = series.is_level ? kWidth - kRight - 8 : frame.left(point.x), y = frame.top(point.y);
    const std::string where =
        series.is_level ? fmt::format("{:.6g}", point.y) : fmt::format("{:.6g}, {:.6g}", point.x, point.y);
    svg += mark(x, y, series.marker, colour_of(series.colour),
                fmt::format("{}{}{}: {}", series.name, point.label.empty() ? "" : " ", point.label, where));
    places.take(x - 4, y - 4, x + 4, y + 4);
    if (series.is_level) break;
  }
  return svg;
}

std::string labels(const ChartSeries& series, const Frame& frame, Places& places) {
  std::string svg;
  for (const ChartPoint& point : series.points) {
    if (point.label.empty() || series.is_level || !frame.shows(series, point)) continue;
    svg += places.label(frame.left(point.x), frame.top(point.y), point.label);
  }
  return svg;
}

// The legend in lines, with as many entries as fit on each.
struct Legend {
  std::string svg;
  double height = 0;
};

Legend legend_of(const std::vector<const ChartSeries*>& shown, double top) {
  Legend legend;
  double x = 8, y = top;
  for (const ChartSeries* series : shown) {
    const double width = 34 + width_of(series->name) + 12;
    if (x > 8 && x + width > kWidth) x = 8, y += kLegendLine;
    const std::string dashes = series->is_level ? " stroke-dasharray=\"6 3\"" : "";
    if (series->joined || series->is_level) {
      legend.svg += line_between(x, y, x + 26, y, stroke(colour_of(series->colour), 1.6) + dashes);
    }
    if (series->marked) legend.svg += mark(x + 13, y, series->marker, colour_of(series->colour), series->name);
    legend.svg += text_at(x + 32, y + 4, "start", series->name, " class=\"legend\"");
    x += width;
  }
  legend.height = shown.empty() ? 0 : y - top + kLegendLine;
  return legend;
}

}  // namespace

std::string svg_of(const Chart& chart) {
  const Frame frame = frame_of(chart);
  std::vector<const ChartSeries*> shown;
  for (const ChartSeries& series : chart.series) {
    if (has_something(series, frame)) shown.push_back(&series);
  }
  const double below = kTop + kPlotHeight + kBottom + 6;
  const Legend legend = legend_of(shown, below + 6);
  std::string svg = begin_svg(below + legend.height + 4, chart.title) + grid(chart, frame);
  Places places;
  for (const ChartSeries* series : shown) svg += series_lines(*series, frame);
  for (const ChartSeries* series : shown) svg += series_marks(*series, frame, places);
  for (const ChartSeries* series : shown) svg += labels(*series, frame, places);
  return svg + legend.svg + "</svg>\n";
}

std::string svg_of(const IntervalChart& chart) {
  double names = 0;
  std::vector<double> values = {chart.reference};
  for (const IntervalRow& row : chart.rows) {
    names = std::max(names, width_of(row.name));
    for (const std::optional<double>& value : {std::optional(row.value), row.low, row.high}) {
      if (value) values.push_back(*value);
    }
  }
  const auto [least, most] = std::ranges::minmax(values);
  const ChartScale scale({.label = chart.axis, .logarithmic = least > 0 && most > 5 * least}, values);
  const double left = std::min(names + 16, 0.5 * kWidth),
               base = kTop + kRowHeight * static_cast<double>(chart.rows.size()) + 6;
  const auto at = [&](double value) { return left + scale.fraction(value) * (kWidth - left - kRight - 8); };
  std::string svg = begin_svg(base + kBottom, chart.title);
  for (const double value : scale.tick_values()) {
    svg += line_between(at(value), kTop, at(value), base, stroke("#ddd", 1));
    svg += text_at(at(value), base + 16, "middle", tick_text(value), " class=\"tick\"");
  }
  svg += line_between(at(chart.reference), kTop, at(chart.reference), base, stroke("#666", 1.5));
  for (std::size_t i = 0; i < chart.rows.size(); ++i) {
    const IntervalRow& row = chart.rows[i];
    if (!std::isfinite(row.value)) continue;
    const double y = kTop + kRowHeight * (static_cast<double>(i) + 0.5) + 3;
    std::string tip = fmt::format("{}: {:.4g}", row.name, row.value);
    if (row.low && row.high) {
      const std::string line = stroke(colour_of(row.colour), 1.6) + " class=\"interval\"";
      tip += fmt::format(" [{:.4g}, {:.4g}]", *row.low, *row.high);
      svg += line_between(at(*row.low), y, at(*row.high), y, line);
      for (const double end : {*row.low, *row.high}) svg += line_between(at(end), y - 4, at(end), y + 4, line);
    }
    svg += text_at(8, y + 4, "start", row.name) + mark(at(row.value), y, row.marker, colour_of(row.colour), tip);
  }
  return svg + text_at((left + kWidth - kRight) / 2, base + 36, "middle", chart.axis) + "</svg>\n";
}

}  // namespace syncopate::experiments
