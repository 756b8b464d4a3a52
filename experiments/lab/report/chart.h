// Chart: what a picture shows, as plain data. A page draws it (html_page.h, page/page.js); others may draw it
// elsewhere.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
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
  bool marked = true;  // whether each point has a mark
  // whether y of its first point is drawn as a line across the chart, because it does not depend on x
  bool is_level = false;
  // Colours are those of Okabe and Ito, which people with any colour vision can distinguish, and grey. Numbers past the
  // last begin again. Two series look different if either the colour or the marker differs.
  int colour = 0;
  int marker = 0;
  bool dashed = false;  // a line that belongs to the one of the same colour, as its model: it is not named in the chart
};

struct ChartAxis {
  std::string label;                // with the unit
  bool logarithmic = false;         // values below zero are then left out, and zeros have a place of their own
  bool from_zero = false;           // whether it begins at zero, so that lengths can be compared
  std::optional<double> most = {};  // the largest possible value; the axis ends there at the latest
};

// The same figures over something else, or a part of them. Of each there is a switch, and a view for each pair.
struct ChartView {
  std::string name = {};  // what it is drawn over: "steps"
  ChartAxis x;
  std::vector<ChartSeries> series;
  std::string part = {};  // which figures it has: "workers=4"
};

struct Chart {
  std::string title;
  ChartAxis x, y;
  std::vector<ChartSeries> series;
  std::string view = {}, part = {};    // name and part of what `x` and `series` are, where there are further views
  std::vector<ChartView> others = {};  // further views, with the same y
  std::size_t place = 0;               // how many of `others` the switches name before this one
  std::string note = {};               // a sentence below the chart
};

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
  std::string note = {};
};

// Bars that lie in rows, each from one value to another: parts of a whole, a waterfall, a histogram, a timeline.
struct Bar {
  std::string row;  // one of `rows`
  double from = 0, to = 0;
  std::string label = {};  // shown behind the bar, and in its tooltip
  std::string tip = {};    // shown in its tooltip alone
};
struct BarSeries {
  std::string name;
  std::vector<Bar> bars;
  int colour = 0;
};
struct BarPart {
  std::string part;  // which figures it has: "servers=4"
  std::vector<std::string> rows;
  std::vector<BarSeries> series;
};
struct BarChart {
  std::string title;
  ChartAxis axis;                 // of the values
  std::vector<std::string> rows;  // from the top
  std::vector<BarSeries> series;
  std::string note = {};
  std::string part = {};             // what `rows` and `series` are, where there are further parts
  std::vector<BarPart> others = {};  // which switches name before this one
};

using AnyChart = std::variant<Chart, IntervalChart, BarChart>;

// Whether it has anything to draw: a value that is a finite number.
bool has_something(const AnyChart& chart);

const std::string& title_of(const AnyChart& chart);

}  // namespace syncopate::experiments
