#include "experiments/lab/trace/trace_tracks.h"

namespace syncopate::experiments {

std::size_t NestedLanes::take(TimePoint begin, TimePoint end) {
  for (std::size_t lane = 0;; ++lane) {
    if (lane == lanes_.size()) lanes_.emplace_back();
    std::vector<TimePoint>& under_way = lanes_[lane];
    while (!under_way.empty() && under_way.back() <= begin) under_way.pop_back();
    if (!under_way.empty() && under_way.back() < end) continue;
    under_way.push_back(end);
    return lane;
  }
}

std::size_t SeparateLanes::take(TimePoint begin, TimePoint end) {
  for (std::size_t lane = 0;; ++lane) {
    if (lane == ends_.size()) ends_.push_back(TimePoint::min());
    if (ends_[lane] > begin) continue;
    ends_[lane] = end;
    return lane;
  }
}

}  // namespace syncopate::experiments
