// How often a process says what it is doing, and the coordinator expects to hear it.
#pragma once

#include <algorithm>

#include "common/clock.h"

namespace syncopate::experiments {

// Every tenth of the timeout, so that its silence is told from a late word, and at least every second.
// With a `stall_warning` of more than zero also every fifth of that, so that a stall is not found much later.
inline Duration heartbeat_interval(Duration timeout, Duration stall_warning = {}) {
  const Duration interval = std::min<Duration>(std::chrono::seconds(1), timeout / 10);
  return stall_warning > Duration::zero() ? std::min(interval, stall_warning / 5) : interval;
}

}  // namespace syncopate::experiments
