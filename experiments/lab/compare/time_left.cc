#include "experiments/lab/compare/time_left.h"

namespace syncopate::experiments {

void TimeLeft::ran(std::size_t row, double seconds) {
  if (ahead_[row] > 0) --ahead_[row];
  took_[row].seconds += seconds;
  ++took_[row].runs;
}

std::optional<double> TimeLeft::seconds() const {
  Took all;
  for (const Took& took : took_) {
    all.seconds += took.seconds;
    all.runs += took.runs;
  }
  if (all.runs == 0) return std::nullopt;
  double left = 0;
  for (std::size_t row = 0; row < ahead_.size(); ++row) {
    const Took& took = took_[row].runs > 0 ? took_[row] : all;
    left += static_cast<double>(ahead_[row]) * took.seconds / static_cast<double>(took.runs);
  }
  return left;
}

}  // namespace syncopate::experiments
