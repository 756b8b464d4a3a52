// Chart: points and lines as an SVG picture that a browser shows by itself. Pure.
#pragma once

#include <string>
#include <vector>

namespace syncopate::experiments {

struct ChartPoint {
  double x = 0;
  double y = 0;
  std::string label = {};  // that stands beside it
};

struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;
  bool joined = true;  // by a line, in this order
};

struct ChartAxis {
  std::string label;
  bool logarithmic = false;  // values of zero and below are then left out
};

struct Chart {
  std::string title;
  ChartAxis x, y;
  std::vector<ChartSeries> series;
};

// An <svg> element, 720 wide, with axes, a grid and a legend. Values that are no numbers are left out. Colours are
// those of Okabe and Ito, which people with any colour vision tell apart; from the ninth series on they come again,
// dashed.
std::string svg_of(const Chart& chart);

// Round values that divide [low, high] into some four to eight parts: 1, 2 or 5 times a power of ten apart; on a
// logarithmic axis powers of ten, and, where there are fewer than three of these, 2 and 5 times them.
std::vector<double> ticks(double low, double high, bool logarithmic);

}  // namespace syncopate::experiments
