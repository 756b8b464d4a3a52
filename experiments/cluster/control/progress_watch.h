// ProgressWatch: detects that a process's own work makes no progress. Pure: it is told what the process's Activity
// shows and when.
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.h"

namespace syncopate::experiments {

class ProgressWatch {
 public:
  // The work may stand still for the timeout plus `margin`: the regular deadlines of a wait come first, and a process
  // that exceeds them by that much cannot recover. The watch begins `now`.
  ProgressWatch(Duration margin, TimePoint now) : margin_(margin), last_change_(now) {}

  // This process has not looked for this long: it may not have run.
  void forgive(Duration absence) { last_change_ += absence; }

  // Takes what an Activity shows `now`: changes() and may_last(). Returns how long the work has stood still, if that is
  // too long under `timeout`.
  std::optional<Duration> stands_still_for(std::uint64_t changes, bool may_last, Duration timeout, TimePoint now) {
    if (changes != changes_ || may_last) {
      changes_ = changes;
      last_change_ = now;
    }
    const Duration still = now - last_change_;
    return still < timeout + margin_ ? std::nullopt : std::optional(still);
  }

 private:
  Duration margin_;
  std::uint64_t changes_ = 0;
  TimePoint last_change_;
};

}  // namespace syncopate::experiments
