#include "common/os/readiness.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <thread>

namespace syncopate {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kLongest{std::numeric_limits<int>::max()};
constexpr Milliseconds kBetweenFailures{100};

// Rounded up, so that a wait of so long ends behind the deadline.
Milliseconds until(TimePoint deadline) {
  if (deadline == kNoDeadline) return kLongest;
  if (deadline == TimePoint::min()) return Milliseconds(0);
  const TimePoint now = SteadyClock().now();
  return deadline <= now ? Milliseconds(0) : std::min(kLongest, std::chrono::ceil<Milliseconds>(deadline - now));
}

}  // namespace

bool ready_before(TimePoint deadline, std::span<pollfd> items) {
  while (true) {
    const Milliseconds left = until(deadline);
    const int ready = poll(items.data(), items.size(), static_cast<int>(left.count()));
    if (ready > 0) return true;
    if (ready == 0 && left < kLongest) return false;
    if (ready == 0 || errno == EINTR) continue;
    // The kernel has no memory, say.
    for (pollfd& item : items) item.revents = 0;
    if (left == Milliseconds(0)) return false;
    std::this_thread::sleep_for(std::min(left, kBetweenFailures));
  }
}

bool ready_before(TimePoint deadline, int descriptor, short events) {
  pollfd item{.fd = descriptor, .events = events, .revents = 0};
  return ready_before(deadline, {&item, 1});
}

}  // namespace syncopate
