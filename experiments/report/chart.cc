#include "experiments/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "experiments/report/format.h"
#include "experiments/report/html_text.h"

namespace syncopate::experiments {
namespace {

constexpr double kWidth = 720, kPlotHeight = 300;
constexpr double kLeft = 70, kRight = 20, kTop = 34, kBottom = 46, kLegendLine = 18;
constexpr std::array kColours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                 "#E69F00", "#56B4E9", "#000000", "#B8A900"};

// One axis: values to fractions of its length.
class Scale {
 public:
  Scale(const ChartAxis& axis, const std::vector<ChartSeries>& series, double ChartPoint::*member) : axis_(axis) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const ChartSeries& one : series) {
      for (const ChartPoint& point : one.points) {
        if (!shows(point.*member)) continue;
        low = std::min(low, point.*member);
        high = std::max(high, point.*member);
      }
    }
    if (low > high) low = axis.logarithmic ? 1 : 0, high = low + 1;  // nothing to show
    // A margin, so that no mark lies on the frame.
    const double margin = to(high) > to(low) ? 0.04 * (to(high) - to(low)) : axis.logarithmic ? 0.3 : 0.5;
    low_ = to(low) - margin, high_ = to(high) + margin;
  }

  bool shows(double value) const { return std::isfinite(value) && (!axis_.logarithmic || value > 0); }
  double fraction(double value) const { return (to(value) - low_) / (high_ - low_); }
  std::vector<double> tick_values() const { return ticks(from(low_), from(high_), axis_.logarithmic); }

 private:
  double to(double value) const { return axis_.logarithmic ? std::log10(value) : value; }
  double from(double value) const { return axis_.logarithmic ? std::pow(10, value) : value; }

  const ChartAxis& axis_;
  double low_ = 0, high_ = 1;
};

struct Frame {
  Scale x, y;

  double left(double value) const { return kLeft + x.fraction(value) * (kWidth - kLeft - kRight); }
  double top(double value) const { return kTop + (1 - y.fraction(value)) * kPlotHeight; }
};

std::string tick_text(double value) {
  return std::abs(value) < 1e4 ? fmt::format("{:.4g}", value) : format_count(value);
}

std::string text_at(double x, double y, const char* anchor, const std::string& text, const char* more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more,
                     html_text(text));
}

std::string grid(const Chart& chart, const Frame& frame) {
  constexpr double kRightEdge = kWidth - kRight, kBase = kTop + kPlotHeight;
  std::string svg;
  for (const double value : frame.x.tick_values()) {
    const double x = frame.left(value);
    svg += fmt::format("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" class=\"grid\"/>\n", x, kTop, kBase);
    svg += text_at(x, kBase + 16, "middle", tick_text(value));
  }
  for (const double value : frame.y.tick_values()) {
    const double y = frame.top(value);
    svg += fmt::format("<line x1=\"{1}\" x2=\"{2}\" y1=\"{0:.1f}\" y2=\"{0:.1f}\" class=\"grid\"/>\n", y, kLeft,
                       kRightEdge);
    svg += text_at(kLeft - 6, y + 4, "end", tick_text(value));
  }
  svg += text_at((kLeft + kRightEdge) / 2, kBase + 36, "middle", chart.x.label);
  const double middle = kTop + kPlotHeight / 2;
  return svg + text_at(16, middle, "middle", chart.y.label,
                       fmt::format(" transform=\"rotate(-90 16 {:.1f})\"", middle).c_str());
}

std::string series_of(const ChartSeries& series, std::size_t index, const Frame& frame) {
  const char* const colour = kColours[index % kColours.size()];
  const char* const dashes = index < kColours.size() ? "" : " stroke-dasharray=\"5 3\"";
  std::string path, marks;
  for (const ChartPoint& point : series.points) {
    if (!frame.x.shows(point.x) || !frame.y.shows(point.y)) continue;
    const double x = frame.left(point.x), y = frame.top(point.y);
    if (series.joined) path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x, y);
    marks += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}: {:.6g}, {:.6g}</title>"
        "</circle>\n",
        x, y, colour, html_text(series.name), point.x, point.y);
    // To the side where there is room for it.
    const bool at_the_left = x > 0.8 * kWidth;
    const double beside = at_the_left ? x - 6 : x + 6;
    if (!point.label.empty()) marks += text_at(beside, y - 5, at_the_left ? "end" : "start", point.label);
  }
  const double legend = kTop + kPlotHeight + kBottom + kLegendLine * (static_cast<double>(index) + 0.5);
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"{}/>\n", path, colour, dashes) +
         marks +
         fmt::format(
             "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\" stroke-width=\"3\"{4}/>\n",
             kLeft, kLeft + 26, legend, colour, dashes) +
         text_at(kLeft + 34, legend + 4, "start", series.name);
}

}  // namespace

std::string svg_of(const Chart& chart) {
  const Frame frame{Scale(chart.x, chart.series, &ChartPoint::x), Scale(chart.y, chart.series, &ChartPoint::y)};
  const double height = kTop + kPlotHeight + kBottom + kLegendLine * static_cast<double>(chart.series.size()) + 6;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n"
      "<style>.grid {{ stroke: #ddd; }}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      kWidth, height);
  svg += text_at(kLeft, 20, "start", chart.title, " font-weight=\"bold\" font-size=\"14\"");
  svg += grid(chart, frame);
  svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888\"/>\n", kLeft,
                     kTop, kWidth - kLeft - kRight, kPlotHeight);
  for (std::size_t i = 0; i < chart.series.size(); ++i) svg += series_of(chart.series[i], i, frame);
  return svg + "</svg>\n";
}

std::vector<double> ticks(double low, double high, bool logarithmic) {
  std::vector<double> values;
  if (logarithmic) {
    const int first = static_cast<int>(std::floor(std::log10(low))),
              last = static_cast<int>(std::ceil(std::log10(high)));
    const bool few = std::log10(high) - std::log10(low) < 3;
    for (int power = first; power <= last; ++power) {
      for (const int times : {1, 2, 5}) {
        const double value = times * std::pow(10, power);
        if ((times == 1 || few) && value >= low && value <= high) values.push_back(value);
      }
    }
    return values;
  }
  const double rough = (high - low) / 5, power = std::pow(10, std::floor(std::log10(rough)));
  const double part = rough / power;  // 1 to 10
  const double step = power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
  // Counted, so that no rounding adds up.
  for (auto i = static_cast<std::int64_t>(std::ceil(low / step)); static_cast<double>(i) * step <= high; ++i) {
    values.push_back(static_cast<double>(i) * step);
  }
  return values;
}

}  // namespace syncopate::experiments
