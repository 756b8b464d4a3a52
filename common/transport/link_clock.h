// LinkClock: one direction of a link in virtual time: when has which message passed? Pure: times in, times out.
//
// It is a token bucket with a burst of nothing, as a real link is: one message after another, each as long as its bytes
// take. A shaper of packets (tc's tbf) needs a burst because its timer is coarse; virtual time has no timer.
#pragma once

#include <cstddef>
#include <deque>

#include "common/clock.h"

namespace syncopate {

class LinkClock {
 public:
  struct Passage {
    TimePoint begin;  // of its first byte
    TimePoint end;    // of its last byte
  };

  // Takes the link for `busy` in all, from the first moment at or after `from` at which it is free; where others have
  // taken it later on, what is left goes behind them. So it does not matter in which order messages are asked about
  // that did not come at the same time, as several threads may ask. `busy` is above zero.
  Passage pass(TimePoint from, Duration busy);

  // So many busy times are remembered; those before count as one, with what was free between them.
  static constexpr std::size_t kMostRemembered = 1024;

 private:
  std::deque<Passage> taken_;  // in order, apart from each other
};

}  // namespace syncopate
