// CoordinatorWatch: whether the coordinator is still heard. Pure: it is told when something has come from it.
#pragma once

#include <optional>
#include <utility>

#include "common/clock.h"

namespace syncopate::experiments {

class CoordinatorWatch {
 public:
  // Begins `now`, as if something had come.
  explicit CoordinatorWatch(TimePoint now) : last_heard_(now) {}

  void on_heard(TimePoint now) { last_heard_ = now; }
  // Nobody has listened for so long.
  void forgive(Duration absence) { last_heard_ += absence; }

  Duration silence(TimePoint now) const { return now - last_heard_; }
  // How long it has been silent, where that is as long as the timeout. Said once: whoever hears it stops.
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
