// LinkCut: whether a process's data links carry anything, shared by all of its endpoints.
#pragma once

#include <atomic>

#include "common/clock.h"

namespace syncopate {

// Any thread.
class LinkCut {
 public:
  // From now on nothing passes; until `time` it stays so.
  void cut_until(TimePoint time) { until_.store(time.time_since_epoch().count(), std::memory_order_relaxed); }

  // Past, where the links are whole.
  TimePoint until() const { return TimePoint(Duration(until_.load(std::memory_order_relaxed))); }

 private:
  std::atomic<Duration::rep> until_{0};
};

}  // namespace syncopate
