#include "common/transport/link_clock.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

TimePoint at(int us) { return TimePoint{} + std::chrono::microseconds(us); }

class LinkClockTest : public testing::Test {
 protected:
  void expect_passage(int from, int busy, int begin, int end) {
    const LinkClock::Passage passage = clock_.pass(at(from), std::chrono::microseconds(busy));
    EXPECT_EQ(passage.begin, at(begin));
    EXPECT_EQ(passage.end, at(end));
  }

  LinkClock clock_;
};

TEST_F(LinkClockTest, LetsMessagesPassOneAfterAnother) {
  expect_passage(100, 10, 100, 110);
  expect_passage(100, 5, 110, 115);
  expect_passage(112, 5, 115, 120);
}

TEST_F(LinkClockTest, DoesNotSaveUpTimeInWhichNothingPassed) {
  expect_passage(0, 10, 0, 10);
  expect_passage(1000, 10, 1000, 1010);
  expect_passage(1000, 10, 1010, 1020);
}

TEST_F(LinkClockTest, GivesTimeThatWasFreeToWhoAsksLateForIt) {
  expect_passage(100, 10, 100, 110);
  expect_passage(0, 20, 0, 20);
  expect_passage(10, 30, 20, 50);
}

TEST_F(LinkClockTest, SpreadsAMessageOverWhatOthersHaveLeftFree) {
  expect_passage(100, 10, 100, 110);
  expect_passage(130, 10, 130, 140);
  expect_passage(90, 45, 90, 155);  // 10, then 20, then 15 behind the others
  expect_passage(80, 20, 80, 165);  // nothing is left before
}

TEST_F(LinkClockTest, TakesNoMoreThanAGapWhereAMessageJustFits) {
  expect_passage(100, 10, 100, 110);
  expect_passage(80, 20, 80, 100);
  expect_passage(80, 1, 110, 111);
}

TEST_F(LinkClockTest, EndsAtTheSameTimeInWhateverOrderMessagesAreAskedAbout) {
  LinkClock other;
  const int froms[] = {0, 5, 40, 41, 90}, busy[] = {20, 10, 3, 30, 7};
  TimePoint end, other_end;
  for (int i = 0; i < 5; ++i) {
    end = std::max(end, clock_.pass(at(froms[i]), std::chrono::microseconds(busy[i])).end);
    other_end = std::max(other_end, other.pass(at(froms[4 - i]), std::chrono::microseconds(busy[4 - i])).end);
  }
  EXPECT_EQ(end, at(97));
  EXPECT_EQ(other_end, end);
}

TEST_F(LinkClockTest, ForgetsWhatWasFreeLongAgo) {
  const int count = static_cast<int>(LinkClock::kMostRemembered) + 1;
  for (int i = 0; i < count; ++i) expect_passage(100 * i, 10, 100 * i, 100 * i + 10);
  expect_passage(10, 10, 110, 120);  // the first gap is forgotten, the second is not
}

}  // namespace
}  // namespace syncopate
