#include "common/patience.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

constexpr TimePoint kBegin{Duration(1000s)};

class PatienceTest : public testing::Test {
 protected:
  PatienceTest() { patience_.set_timeout(10s); }

  Patience patience_;
};

TEST_F(PatienceTest, EndsAWaitAtItsDeadlineWhereEverybodyRuns) {
  PatientWait wait(patience_, kBegin + 300ms, kBegin);
  EXPECT_EQ(wait.next(kBegin), kBegin + 250ms);
  EXPECT_EQ(wait.next(kBegin + 250ms), kBegin + 300ms);
  EXPECT_EQ(wait.next(kBegin + 300ms), std::nullopt);
}

TEST_F(PatienceTest, GivesAWaitItsWholeTimeAgainOnceSomebodyRunsWhoDidNot) {
  PatientWait wait(patience_, kBegin + 10s, kBegin);
  TimePoint now = kBegin;
  for (; now < kBegin + 60s; now += 250ms) {  // the one that coordinates is away, which another thread sees
    patience_.excuse(now);
    ASSERT_TRUE(wait.next(now).has_value());
  }
  for (; now < kBegin + 69s; now += 250ms) ASSERT_TRUE(wait.next(now).has_value());
  for (; now < kBegin + 71s; now += 250ms) (void)wait.next(now);
  EXPECT_EQ(wait.next(now), std::nullopt);
}

// Whoever waits wakes up behind its deadline, before another thread has seen that nobody ran.
TEST_F(PatienceTest, SeesByItselfThatThisProcessDidNotRun) {
  PatientWait wait(patience_, kBegin + 10s, kBegin);
  ASSERT_TRUE(wait.next(kBegin).has_value());
  EXPECT_EQ(wait.next(kBegin + 60s), kBegin + 60s + 250ms);
  EXPECT_EQ(patience_.until(), kBegin + 70s);
}

TEST_F(PatienceTest, NeverEndsEarlierThanItWasToEnd) {
  patience_.excuse(kBegin + 5s);
  patience_.excuse(kBegin);
  EXPECT_EQ(patience_.until(), kBegin + 15s);
}

// The deadline was set before the standstill, and the wait for it begins behind it.
TEST_F(PatienceTest, SeesByTicksThatThisProcessDidNotRun) {
  patience_.tick(kBegin);
  PatientWait wait(patience_, kBegin + 10s, kBegin + 60s);
  EXPECT_EQ(wait.next(kBegin + 60s), kBegin + 60s + 250ms);
  EXPECT_EQ(patience_.until(), kBegin + 70s);
}

TEST_F(PatienceTest, ExcusesWhenTicksGoOnAfterAGap) {
  patience_.tick(kBegin);
  patience_.tick(kBegin + 900ms);
  EXPECT_LT(patience_.until(), kBegin);
  patience_.tick(kBegin + 60s);
  EXPECT_EQ(patience_.until(), kBegin + 70s);
  PatientWait wait(patience_, kBegin + 10s, kBegin + 60s);
  EXPECT_TRUE(wait.next(kBegin + 60s).has_value());
}

TEST_F(PatienceTest, LetsAWaitExpireWhileTicksComeInTime) {
  TimePoint now = kBegin;
  for (; now <= kBegin + 10s; now += 200ms) patience_.tick(now);
  PatientWait wait(patience_, kBegin + 10s, now);
  EXPECT_EQ(wait.next(now), std::nullopt);
}

}  // namespace
}  // namespace syncopate
