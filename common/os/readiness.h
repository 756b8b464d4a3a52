// Readiness: waits until descriptors are ready, or until a time comes (poll(2)). Every wait of this program for a
// descriptor that is none of ZeroMQ's goes through here.
#pragma once

#include <poll.h>

#include <span>

#include "common/clock.h"

namespace syncopate {

inline constexpr TimePoint kNoDeadline = TimePoint::max();

// Waits until one of `items` is ready, at least until `deadline` otherwise. Returns whether one is; each one's revents
// say what has come. Goes on waiting where a signal has been handled meanwhile.
bool ready_before(TimePoint deadline, std::span<pollfd> items);
// The same for one descriptor.
bool ready_before(TimePoint deadline, int descriptor, short events = POLLIN);
// Whether it can be read now; also at its end.
inline bool is_readable(int descriptor) { return ready_before(TimePoint::min(), descriptor); }

}  // namespace syncopate
