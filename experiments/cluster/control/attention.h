// Attention: whether a watcher looks as often as it should. While it does not look, because the machine stands still or
// is busy, silence proves nothing about the watched processes: their messages are only read now. Pure.
#pragma once

#include <chrono>

#include "common/clock.h"

namespace syncopate::experiments {

class Attention {
 public:
  explicit Attention(TimePoint now) : last_(now) {}

  // The watcher looks `now`. Returns how long it has not looked, if that is longer than it should be. That much silence
  // must be forgiven.
  Duration absence(TimePoint now) {
    const Duration gap = now - last_;
    last_ = now;
    return gap > kRegular ? gap : Duration{};
  }

 private:
  static constexpr Duration kRegular = std::chrono::seconds(1);

  TimePoint last_;
};

}  // namespace syncopate::experiments
