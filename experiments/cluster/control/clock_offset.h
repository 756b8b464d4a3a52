// ClockOffset: estimates how far another host's steady clock is ahead of this one's, from exchanges of messages. Pure.
//
// An exchange gives an interval that contains the offset: the difference between the two clocks' stamps is the offset
// plus the time that the message took, which is between zero and the whole round trip. The middle is right if both ways
// take equally long, and wrong by at most half the round trip. So the exchange with the shortest of the last few round
// trips counts (F. Cristian 1989, "Probabilistic clock synchronization"; the clock filter of NTP, RFC 5905, sections 8
// and 10). Older exchanges do not count, since clocks drift apart.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "common/clock.h"

namespace syncopate::experiments {

struct ClockExchange {
  TimePoint sent{};      // on this host: the question
  TimePoint received{};  // on the other host
  TimePoint answered{};  // on the other host
  TimePoint heard{};     // on this host
};

class ClockOffset {
 public:
  static constexpr std::size_t kExchanges = 8;

  struct Estimate {
    Duration offset{};       // the other clock minus this one
    Duration uncertainty{};  // largest distance of the true offset from it: half the round trip
  };

  // Adds an exchange. An impossible one (an answer before its question) is ignored.
  void add(const ClockExchange& exchange) {
    const Duration round_trip = (exchange.heard - exchange.sent) - (exchange.answered - exchange.received);
    if (round_trip < Duration::zero() || exchange.answered < exchange.received) return;
    const Duration offset = ((exchange.received - exchange.sent) + (exchange.answered - exchange.heard)) / 2;
    last_[count_++ % kExchanges] = {offset, round_trip / 2};
  }

  std::size_t exchanges() const { return count_; }

  // Returns none without an exchange.
  std::optional<Estimate> estimate() const {
    std::optional<Estimate> best;
    for (std::size_t i = 0; i < count_ && i < kExchanges; ++i) {
      if (!best || last_[i].uncertainty < best->uncertainty) best = last_[i];
    }
    return best;
  }

 private:
  std::array<Estimate, kExchanges> last_{};
  std::size_t count_ = 0;
};

}  // namespace syncopate::experiments
