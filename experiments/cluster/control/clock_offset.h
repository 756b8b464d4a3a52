// ClockOffset: how far another host's steady clock is ahead of this one's, from exchanges of messages. Pure.
//
// An exchange gives an interval in which the offset must lie: the time between the two clocks' stamps is the offset and
// what the message took, which is between nothing and the whole round trip. The middle is right if both ways take as
// long; it is wrong by half the round trip at most. So of the last few exchanges the one with the shortest round trip
// counts (F. Cristian 1989, "Probabilistic clock synchronization"; the clock filter of NTP, RFC 5905, sections 8 and
// 10). Only the last few, since clocks drift apart.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "common/clock.h"

namespace syncopate::experiments {

struct ClockExchange {
  TimePoint sent{};      // here: the question
  TimePoint received{};  // there
  TimePoint answered{};  // there
  TimePoint heard{};     // here
};

class ClockOffset {
 public:
  static constexpr std::size_t kExchanges = 8;

  struct Estimate {
    Duration offset{};       // there minus here
    Duration uncertainty{};  // the true offset is not farther from it: half the round trip
  };

  // What cannot be (an answer before its question) is left out.
  void add(const ClockExchange& exchange) {
    const Duration round_trip = (exchange.heard - exchange.sent) - (exchange.answered - exchange.received);
    if (round_trip < Duration::zero() || exchange.answered < exchange.received) return;
    const Duration offset = ((exchange.received - exchange.sent) + (exchange.answered - exchange.heard)) / 2;
    last_[count_++ % kExchanges] = {offset, round_trip / 2};
  }

  std::size_t exchanges() const { return count_; }

  // None without an exchange.
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
