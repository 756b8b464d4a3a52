// An axis of a chart: which values it shows, where, and with which ticks. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/report/chart.h"

namespace syncopate::experiments {

// Round values from `low` to `high`, three or more, of which the first is `low` or below and the last `high` or above,
// but never above `most`: 1, 2 or 5 times a power of ten apart; on a logarithmic axis powers of ten, with 2 and 5 times
// them where the axis is short.
std::vector<double> ticks(double low, double high, bool logarithmic, std::optional<double> most = {});

class ChartScale {
 public:
  // Of an axis that has to show `values`; those that it cannot show are passed over.
  ChartScale(const ChartAxis& axis, const std::vector<double>& values);

  bool shows(double value) const;
  double fraction(double value) const;  // of the axis' length; `value` is one that it shows
  // Within the axis, from its beginning to its end.
  const std::vector<double>& tick_values() const { return ticks_; }

 private:
  double to(double value) const;

  bool logarithmic_;
  bool with_zero_ = false;  // a logarithmic axis that has a place for it
  double low_ = 0, high_ = 1;
  std::vector<double> ticks_;
};

// "0.95", "20k", "1.5M"
std::string tick_text(double value);

}  // namespace syncopate::experiments
