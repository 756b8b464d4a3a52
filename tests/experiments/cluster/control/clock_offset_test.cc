#include "experiments/cluster/control/clock_offset.h"

#include <gtest/gtest.h>

#include <random>

namespace syncopate::experiments {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A question sent at `sent` to a clock that is `ahead`, with so long a way there, an answer after `thinking`, and back.
ClockExchange exchange(Duration sent, Duration ahead, Duration there, Duration thinking, Duration back) {
  const TimePoint begin(sent);
  return {.sent = begin,
          .received = begin + there + ahead,
          .answered = begin + there + thinking + ahead,
          .heard = begin + there + thinking + back};
}

TEST(ClockOffset, IsUnknownBeforeTheFirstExchange) { EXPECT_FALSE(ClockOffset().estimate()); }

TEST(ClockOffset, IsExactWhereBothWaysTakeAsLong) {
  for (const Duration ahead : {Duration(milliseconds(-7000)), Duration(0), Duration(std::chrono::hours(900))}) {
    ClockOffset offset;
    offset.add(exchange(milliseconds(5), ahead, microseconds(40), milliseconds(3), microseconds(40)));
    EXPECT_EQ(offset.estimate()->offset, ahead);
    EXPECT_EQ(offset.estimate()->uncertainty, microseconds(40));
  }
}

TEST(ClockOffset, IsThatOfTheShortestRoundTrip) {
  ClockOffset offset;
  offset.add(exchange(milliseconds(1), milliseconds(2), milliseconds(9), milliseconds(0), milliseconds(1)));
  offset.add(exchange(milliseconds(20), milliseconds(2), microseconds(30), milliseconds(0), microseconds(50)));
  offset.add(exchange(milliseconds(40), milliseconds(2), milliseconds(1), milliseconds(0), milliseconds(9)));
  EXPECT_EQ(offset.estimate()->uncertainty, microseconds(40));
  EXPECT_EQ(offset.estimate()->offset, milliseconds(2) - microseconds(10));
}

TEST(ClockOffset, ForgetsWhatIsLongAgoSinceClocksDrift) {
  ClockOffset offset;
  offset.add(exchange(milliseconds(0), milliseconds(0), microseconds(1), milliseconds(0), microseconds(1)));
  for (std::size_t i = 0; i < ClockOffset::kExchanges; ++i) {
    offset.add(exchange(milliseconds(100), milliseconds(3), microseconds(9), milliseconds(0), microseconds(9)));
  }
  EXPECT_EQ(offset.estimate()->offset, milliseconds(3));
}

TEST(ClockOffset, TakesNoExchangeThatCannotBe) {
  ClockOffset offset;
  offset.add({.sent = TimePoint(milliseconds(5)), .received = {}, .answered = {}, .heard = TimePoint(milliseconds(4))});
  offset.add({.sent = {}, .received = TimePoint(milliseconds(2)), .answered = TimePoint(milliseconds(1)), .heard = {}});
  EXPECT_FALSE(offset.estimate());
}

// Whatever the ways take.
TEST(ClockOffset, IsNeverFartherFromTheTruthThanItsUncertainty) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> way(1.0 / 200);  // microseconds
  for (int clock = 0; clock < 200; ++clock) {
    const Duration ahead = microseconds(static_cast<std::int64_t>(random() % 2'000'000) - 1'000'000);
    ClockOffset offset;
    for (int i = 0; i < 12; ++i) {
      offset.add(exchange(milliseconds(i), ahead, from_seconds(way(random) * 1e-6), from_seconds(way(random) * 1e-6),
                          from_seconds(way(random) * 1e-6)));
      const Duration error = offset.estimate()->offset - ahead;
      EXPECT_LE(std::chrono::abs(error), offset.estimate()->uncertainty + Duration(1));
    }
  }
}

}  // namespace
}  // namespace syncopate::experiments
