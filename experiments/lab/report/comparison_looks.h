// What the charts of a comparison share: values of rows with intervals, the look of each row, and lines in views. Pure.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/lab/report/chart.h"
#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// More lines than these are hard to tell apart.
inline constexpr std::size_t kMostNamedLines = 6;

// A value of one row, with its interval.
struct RowValue {
  double value = 0;
  std::optional<Interval> range = {};
};
using RowFigure = std::function<std::optional<RowValue>(const RowFigures&)>;

// None where nothing was measured. From several rounds without an interval the range has the least and the most.
std::optional<RowValue> row_value(const Estimate& estimate);
std::optional<RowValue> row_value(const std::optional<double>& value);

ChartPoint point_at(double x, const RowValue& value, const std::string& label = "");

// The look of a row in every chart: a colour for its mode, and a marker for its place among the mode's rows, or for the
// mode if each mode has one row.
struct Look {
  int colour = 0, marker = 0;
};

class Looks {
 public:
  explicit Looks(const ComparisonReport& report);

  Look of_row(std::size_t row) const { return rows_[row]; }
  Look of_mode(const std::string& mode) const { return modes_.at(mode); }

 private:
  std::map<std::string, Look> modes_;
  std::vector<Look> rows_;
};

ChartAxis quality_axis(const ComparisonFigures& figures);

// The label of an axis of times, or of rates: says where they are virtual.
std::string time_label(const ComparisonReport& report, const std::string& label);

// "workers=2 servers=1", without the option `but`.
std::string values_text(const std::vector<std::pair<std::string, std::string>>& values, const std::string& but);

// Whether rows send different amounts, by more than a twentieth.
bool sends_differ(const ComparisonFigures& figures);

using OptionValues = std::vector<std::pair<std::string, std::string>>;  // option and value

// Returns the parts into which rows with these values fall: each of them but those that another one includes, in their
// order. A row stands in each part that has all of its values, since an option that a part names and a row does not has
// no effect on that row.
std::vector<OptionValues> parts_of(const std::vector<OptionValues>& all);
bool stands_in(const OptionValues& part, const OptionValues& values);

// A line of a chart, and the values that tell its part of the chart from others.
struct PartLine {
  OptionValues values;
  ChartSeries series;
};

// Gives the chart its lines: in parts if their values differ, of which the last is shown first, since most is done
// there where workers or servers are varied.
void set_lines(Chart& chart, const std::vector<PartLine>& lines);

}  // namespace syncopate::experiments
