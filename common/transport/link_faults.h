// LinkFaults: what goes wrong on a process's data links, and until when; shared by all of its endpoints.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "common/clock.h"

namespace syncopate {

enum class LinkFault {
  kCut,        // nothing passes (CuttableTransport)
  kDelay,      // of what it sends, some comes late (FaultyTransport, as are these)
  kDuplicate,  // all comes twice
  kReorder,    // some is overtaken by what was sent after it
};
inline constexpr std::size_t kLinkFaults = 4;

// Any thread.
class LinkFaults {
 public:
  // From now on it is so; until `time` it stays so.
  void begin(LinkFault fault, TimePoint time) {
    until_[static_cast<std::size_t>(fault)].store(time.time_since_epoch().count(), std::memory_order_relaxed);
  }

  // Past, where it is not so.
  TimePoint until(LinkFault fault) const {
    return TimePoint(Duration(until_[static_cast<std::size_t>(fault)].load(std::memory_order_relaxed)));
  }

 private:
  std::array<std::atomic<Duration::rep>, kLinkFaults> until_{};
};

}  // namespace syncopate
