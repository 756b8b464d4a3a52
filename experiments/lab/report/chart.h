// Chart: points and lines as an SVG picture that a browser can show. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace syncopate::experiments {

struct ChartPoint {
  double x = 0;
  double y = 0;
  std::string label = {};                     // shown beside the point if there is room; always in its tooltip
  std::optional<double> low = {}, high = {};  // ends of the error bar of y
};

struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;
  bool joined = true;  // whether a line joins the points, in this order
  bool marked = true;  // whether each point has a mark; a line without marks has no tooltips
  // whether y of its first point is drawn as a line across the chart, because it does not depend on x
  bool is_level = false;
  // Colours are those of Okabe and Ito, which people with any colour vision can distinguish. Numbers past the last
  // begin again. Two series look different if either the colour or the marker differs.
  int colour = 0;
  int marker = 0;
};

struct ChartAxis {
  std::string label;
  bool logarithmic = false;         // values below zero are then left out, and zeros have a place of their own
  bool from_zero = false;           // whether it begins at zero, so that lengths can be compared
  std::optional<double> most = {};  // the largest possible value; the axis ends there at the latest
};

struct Chart {
  std::string title;
  ChartAxis x, y;
  std::vector<ChartSeries> series;
};

// Returns an <svg> element with axes, a grid, and a legend of the series that have values. It takes the width that the
// page gives it. Values that are not finite numbers are left out.
std::string svg_of(const Chart& chart);

// One row for each ratio (or other value) with its interval, and a mark at `reference`.
struct IntervalRow {
  std::string name;
  double value = 0;
  std::optional<double> low = {}, high = {};
  int colour = 0;
  int marker = 0;
};
struct IntervalChart {
  std::string title, axis;
  double reference = 1;
  std::vector<IntervalRow> rows;
};
std::string svg_of(const IntervalChart& chart);

}  // namespace syncopate::experiments
