// Tracks for events, so that on none two overlap unless one lies within the other. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "common/clock.h"

namespace syncopate::experiments {

// The lanes of events that may lie within each other. Events come by their begin, and of equal ones the longest first.
class NestedLanes {
 public:
  // Returns the lane of an event, from 0: the first in which it lies within what is under way there, or behind it.
  std::size_t take(TimePoint begin, TimePoint end);

 private:
  std::vector<std::vector<TimePoint>> lanes_;  // of each the ends of what is under way, the innermost last
};

// The lanes of events of which no two may overlap. Events come by their begin.
class SeparateLanes {
 public:
  // Returns the first lane that is free.
  std::size_t take(TimePoint begin, TimePoint end);

 private:
  std::vector<TimePoint> ends_;
};

}  // namespace syncopate::experiments
