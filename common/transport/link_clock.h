// LinkClock: one direction of a link in virtual time: when each message has passed. Pure: times in, times out.
//
// It is a token bucket without a burst, like a real link: messages pass one after another, each for the time that its
// bytes take. A packet shaper (tc's tbf) needs a burst because its timer is coarse; virtual time has no timer.
#pragma once

#include <cstddef>
#include <deque>

#include "common/clock.h"

namespace syncopate {

class LinkClock {
 public:
  struct Passage {
    TimePoint begin;  // when the first byte passes
    TimePoint end;    // when the last byte passes
  };

  // Reserves the link for `busy` in all, from the first moment at or after `from` at which it is free. If it is
  // reserved later on, the remainder goes after those reservations. So the order of calls does not matter for messages
  // that did not arrive at the same time, as when several threads call. `busy` must be above zero.
  Passage pass(TimePoint from, Duration busy);

  // The number of busy times that are remembered; earlier ones count as one, including the free time between them.
  static constexpr std::size_t kMostRemembered = 1024;

 private:
  std::deque<Passage> taken_;  // in order, disjoint
};

}  // namespace syncopate
