// What is said of messages that pass a link in virtual time. Amounts are in the link's own time: a message's length is
// how long the link would carry it if it had nothing else to carry.
#pragma once

#include <cmath>
#include <compare>

#include "common/clock.h"

namespace syncopate {

// What shares a link with others: all messages between one endpoint of a process and one peer. They pass in order.
struct LinkConnection {
  int endpoint = 0;  // the process's own number of it
  int peer = 0;
  auto operator<=>(const LinkConnection&) const = default;
};

// When a message's first and last byte pass.
struct LinkPassage {
  TimePoint begin, end;
};

// How much of a connection's messages has not passed at a moment. A list of these, in order of time and down to nothing
// left, says how they will pass: evenly between two of them.
struct LinkRemainder {
  TimePoint time;
  Duration left;
};

// Where a link is shared, times and amounts are no whole nanoseconds. A quarter of one is rounding: times are rounded
// up beyond it.
inline constexpr double kLinkRounding = 0.25;
inline double in_nanoseconds(TimePoint time) { return static_cast<double>(time.time_since_epoch().count()); }
inline double in_nanoseconds(Duration time) { return static_cast<double>(time.count()); }
inline TimePoint time_at(double nanoseconds) {
  return TimePoint{Duration(static_cast<Duration::rep>(std::ceil(nanoseconds - kLinkRounding)))};
}

}  // namespace syncopate
