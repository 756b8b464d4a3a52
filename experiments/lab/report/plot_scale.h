// ChartScale: the axis of a chart: which values it shows, where, and with which ticks. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/report/chart.h"

namespace syncopate::experiments {

// Returns three or more round values from `low` to `high`. The first is `low` or below, and the last is `high` or
// above, but never above `most`. They are 1, 2 or 5 times a power of ten apart; on a logarithmic axis they are powers
// of ten, with 2 and 5 times them if the axis is short.
std::vector<double> ticks(double low, double high, bool logarithmic, std::optional<double> most = {});

class ChartScale {
 public:
  // Makes a scale that shows `values`; values that the axis cannot show are ignored.
  ChartScale(const ChartAxis& axis, const std::vector<double>& values);

  bool shows(double value) const;
  double fraction(double value) const;  // position along the axis, 0 to 1; `value` must be one that it shows
  // Ticks within the axis, from its beginning to its end.
  const std::vector<double>& tick_values() const { return ticks_; }

 private:
  double to(double value) const;

  bool logarithmic_;
  bool with_zero_ = false;  // whether a logarithmic axis has a place for zero
  double low_ = 0, high_ = 1;
  std::vector<double> ticks_;
};

// Returns, for example, "0.95", "20k" or "1.5M".
std::string tick_text(double value);

}  // namespace syncopate::experiments
