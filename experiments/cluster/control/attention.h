// Attention: whether a watcher looks as often as it is to. Time in which it did not look, on a machine that stood still
// or did much else, says nothing of those whom it watches: what they have done meanwhile is heard of only now. Pure.
#pragma once

#include <chrono>

#include "common/clock.h"

namespace syncopate::experiments {

class Attention {
 public:
  explicit Attention(TimePoint now) : last_(now) {}

  // It looks `now`. For how long it has not, where that is longer than it should be: so much silence is to be forgiven.
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
