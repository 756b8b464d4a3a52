// Chart: points and lines as an SVG picture that a browser shows by itself. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace syncopate::experiments {

struct ChartPoint {
  double x = 0;
  double y = 0;
  std::string label = {};                     // beside it, where there is room; always in its tooltip
  std::optional<double> low = {}, high = {};  // of y: drawn as an error bar
};

struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;
  bool joined = true;     // by a line, in this order
  bool is_level = false;  // its first point's y is a line across the chart, whatever x: what does not depend on x
  // Colours are those of Okabe and Ito, which people with any colour vision tell apart; numbers past the last begin
  // again. Two series differ if either differs.
  int colour = 0;
  int marker = 0;
};

struct ChartAxis {
  std::string label;
  bool logarithmic = false;         // values below zero are then left out, and zeros have a place of their own
  bool from_zero = false;           // begins at zero, so that lengths can be compared
  std::optional<double> most = {};  // that can be: the axis does not go on beyond it
};

struct Chart {
  std::string title;
  ChartAxis x, y;
  std::vector<ChartSeries> series;
};

// An <svg> element with axes, a grid, and a legend of the series that have something to show. It is as wide as the page
// lets it be. Values that are no numbers are left out.
std::string svg_of(const Chart& chart);

// Ratios or other values with intervals, a line each, with a mark at `reference`.
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
