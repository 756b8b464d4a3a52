#include "common/transport/link_clock.h"

#include <algorithm>

namespace syncopate {

LinkClock::Passage LinkClock::pass(TimePoint from, Duration busy) {
  const auto first = std::ranges::lower_bound(taken_, from, std::less(), &Passage::end);
  auto next = first;
  TimePoint at = from;
  Duration left = busy;
  TimePoint begin = TimePoint::max();
  for (; next != taken_.end() && at + left > next->begin; ++next) {
    if (at < next->begin) {
      begin = std::min(begin, at);
      left -= next->begin - at;
    }
    at = std::max(at, next->end);
  }
  begin = std::min(begin, at);
  const Passage passage{begin, at + left};

  // All that was free between `begin` and the end is taken now.
  const Passage joined{first != next ? std::min(first->begin, begin) : begin, passage.end};
  taken_.insert(taken_.erase(first, next), joined);
  if (taken_.size() > kMostRemembered) {
    taken_[1].begin = taken_[0].begin;
    taken_.pop_front();
  }
  return passage;
}

}  // namespace syncopate
