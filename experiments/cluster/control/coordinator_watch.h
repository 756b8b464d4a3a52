// CoordinatorWatch: detects that the coordinator has fallen silent. Pure: it is told when a message has arrived.
#pragma once

#include <optional>
#include <utility>

#include "common/clock.h"

namespace syncopate::experiments {

class CoordinatorWatch {
 public:
  // Begins `now`, as if a message had arrived.
  explicit CoordinatorWatch(TimePoint now) : last_heard_(now) {}

  void on_heard(TimePoint now) { last_heard_ = now; }
  // This process has not listened for this long.
  void forgive(Duration absence) { last_heard_ += absence; }

  Duration silence(TimePoint now) const { return now - last_heard_; }
  // Returns how long the coordinator has been silent, once that reaches the timeout. It does so only once, since the
  // process then stops.
  std::optional<Duration> falls_silent(Duration timeout, TimePoint now) {
    const Duration silence = now - last_heard_;
    if (silence < timeout || std::exchange(said_, true)) return std::nullopt;
    return silence;
  }

 private:
  TimePoint last_heard_;
  bool said_ = false;
};

}  // namespace syncopate::experiments
