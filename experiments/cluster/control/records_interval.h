// How often a worker sends the records of its steps: every 200 ms, and less often where many do, so that all together
// send about 500 messages of records a second. The coordinator's traffic then depends on the steps alone.
#pragma once

#include <algorithm>

#include "common/clock.h"

namespace syncopate::experiments {

inline Duration records_interval(int workers) {
  return std::clamp<Duration>(workers * std::chrono::milliseconds(2), std::chrono::milliseconds(200),
                              std::chrono::seconds(1));
}

}  // namespace syncopate::experiments
