// LinkFaults: the faults of a process's data links, and their ends; shared by all of its endpoints.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "common/clock.h"

namespace syncopate {

enum class LinkFault {
  kCut,        // nothing passes (CuttableTransport)
  kDelay,      // some sent messages arrive late (FaultyTransport, as for the next two)
  kDuplicate,  // every message arrives twice
  kReorder,    // some messages are overtaken by later ones
};
inline constexpr std::size_t kLinkFaults = 4;

// Any thread.
class LinkFaults {
 public:
  // Begins the fault now; it lasts until `time`.
  void begin(LinkFault fault, TimePoint time) {
    until_[static_cast<std::size_t>(fault)].store(time.time_since_epoch().count(), std::memory_order_relaxed);
  }

  // Returns when the fault ends; a time in the past if it is not active.
  TimePoint until(LinkFault fault) const {
    return TimePoint(Duration(until_[static_cast<std::size_t>(fault)].load(std::memory_order_relaxed)));
  }

 private:
  std::array<std::atomic<Duration::rep>, kLinkFaults> until_{};
};

}  // namespace syncopate
