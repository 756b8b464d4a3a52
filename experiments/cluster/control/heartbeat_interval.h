// How often a process sends heartbeats, and the coordinator expects them.
#pragma once

#include <algorithm>

#include "common/clock.h"

namespace syncopate::experiments {

// Returns a tenth of the timeout, so that silence can be told from a late message, and at most a second. With a
// `stall_warning` above zero it returns at most a fifth of that, so that a stall is not found much later.
inline Duration heartbeat_interval(Duration timeout, Duration stall_warning = {}) {
  const Duration interval = std::min<Duration>(std::chrono::seconds(1), timeout / 10);
  return stall_warning > Duration::zero() ? std::min(interval, stall_warning / 5) : interval;
}

}  // namespace syncopate::experiments
