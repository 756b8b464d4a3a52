#include "worker/straggling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <vector>

namespace syncopate::worker {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

class StragglingTest : public testing::Test {
 protected:
  Straggling straggling(const std::string& text, Duration longest = std::chrono::hours(1)) {
    return Straggling({.stragglers = *Stragglers::parse(text), .worker = 1, .longest = longest}, clock_,
                      [this](Duration duration) {
                        waits_.push_back(duration);
                        clock_.advance(duration + late_);
                        return !told_to_stop_;
                      });
  }
  void compute(Duration duration) { clock_.advance(duration); }

  ManualClock clock_;
  std::vector<Duration> waits_;
  Duration late_{};
  bool told_to_stop_ = false;
};

TEST_F(StragglingTest, StretchesEveryPartOfTheComputeAlike) {
  Straggling slow = straggling("1:4x");
  slow.begin_step(0);
  for (const Duration part : {milliseconds(2), milliseconds(1), milliseconds(5)}) {
    compute(part);
    slow.catch_up();
  }
  EXPECT_THAT(waits_, ElementsAre(milliseconds(6), milliseconds(3), milliseconds(15)));
  EXPECT_EQ(slow.waited(), milliseconds(24));
}

TEST_F(StragglingTest, DoesNotStretchWhatWasNoCompute) {
  Straggling slow = straggling("1:4x");
  slow.begin_step(0);
  compute(milliseconds(2));
  clock_.advance(milliseconds(50));
  slow.leave_out(milliseconds(50));
  slow.catch_up();
  EXPECT_THAT(waits_, ElementsAre(milliseconds(6)));
}

// Each pass of a step by the cost of its own samples, beside what slows every step.
TEST_F(StragglingTest, WaitsForWhatEachPassCosts) {
  Straggling slow(
      {.stragglers = *Stragglers::parse("all:2x,all:+20"), .by_cost = true, .longest = std::chrono::hours(1)}, clock_,
      [this](Duration duration) {
        waits_.push_back(duration);
        clock_.advance(duration);
        return true;
      });
  for (int step = 0; step < 2; ++step) {
    slow.begin_step(step);
    for (const double cost : {0.5, 3.0}) {
      slow.begin_pass(cost);
      for (const Duration part : {milliseconds(2), milliseconds(4)}) {
        compute(part);
        slow.catch_up();
      }
    }
    EXPECT_EQ(slow.waited(), milliseconds(20 + 9 + 24));
  }
  const std::vector<Duration> a_step{milliseconds(23), milliseconds(6), milliseconds(8), milliseconds(16)};
  EXPECT_THAT(std::span(waits_).first(4), testing::ElementsAreArray(a_step));
  EXPECT_THAT(std::span(waits_).last(4), testing::ElementsAreArray(a_step));
}

TEST_F(StragglingTest, DoesNotWaitForCostsUnlessItIsTo) {
  Straggling slow = straggling("1:2x");
  slow.begin_step(0);
  slow.begin_pass(100);
  compute(milliseconds(2));
  slow.catch_up();
  EXPECT_THAT(waits_, ElementsAre(milliseconds(2)));
}

TEST_F(StragglingTest, TakesExtraTimeBeforeAnyGradientIsReady) {
  Straggling slow = straggling("1:+20");
  slow.begin_step(0);
  compute(milliseconds(2));
  slow.catch_up();
  compute(milliseconds(2));
  slow.catch_up();
  EXPECT_THAT(waits_, ElementsAre(milliseconds(20)));
}

TEST_F(StragglingTest, MakesUpForWaitsThatLastedTooLong) {
  late_ = milliseconds(1);
  Straggling slow = straggling("1:2x");
  slow.begin_step(0);
  for (int part = 0; part < 3; ++part) {
    compute(milliseconds(10));
    slow.catch_up();
  }
  EXPECT_THAT(waits_, ElementsAre(milliseconds(10), milliseconds(9), milliseconds(9)));
  EXPECT_EQ(slow.waited(), milliseconds(31));
}

TEST_F(StragglingTest, TakesWhatLastedTooLongOffTheNextStepUpToADelay) {
  Straggling slow = straggling("1:+10");
  const auto wait_of_step = [&](Duration late) {
    late_ = late;
    slow.begin_step(0);
    slow.catch_up();
    return slow.waited();
  };
  EXPECT_EQ(wait_of_step(milliseconds(4)), milliseconds(14));
  EXPECT_EQ(wait_of_step(milliseconds(1)), milliseconds(7));
  EXPECT_EQ(wait_of_step(milliseconds(500)), milliseconds(509));
  EXPECT_EQ(wait_of_step({}), milliseconds(0)) << "held up for long";
  EXPECT_EQ(wait_of_step({}), milliseconds(10)) << "and forgotten";
}

TEST_F(StragglingTest, BeginsEachStepAnew) {
  Straggling slow = straggling("1:2x");
  for (std::int64_t step = 0; step < 2; ++step) {
    slow.begin_step(step);
    compute(milliseconds(10));
    slow.catch_up();
    EXPECT_EQ(slow.waited(), milliseconds(10));
    compute(milliseconds(100));  // between the steps
  }
}

TEST_F(StragglingTest, DoesNotWaitWhereAnotherWorkerIsMeant) {
  Straggling other = straggling("0:4x,2:+50");
  other.begin_step(0);
  compute(milliseconds(10));
  other.catch_up();
  EXPECT_THAT(waits_, IsEmpty());
}

TEST_F(StragglingTest, WaitsNoLongerThanTheLongestInAStep) {
  Straggling slow = straggling("1:100x", milliseconds(50));
  slow.begin_step(0);
  for (int part = 0; part < 3; ++part) {
    compute(milliseconds(10));
    slow.catch_up();
  }
  EXPECT_THAT(waits_, ElementsAre(milliseconds(50)));
}

TEST_F(StragglingTest, WaitsNoMoreOnceItWasTold) {
  told_to_stop_ = true;
  Straggling slow = straggling("1:2x");
  slow.begin_step(0);
  compute(milliseconds(10));
  slow.catch_up();
  EXPECT_TRUE(slow.interrupted());
  compute(milliseconds(10));
  slow.catch_up();
  EXPECT_THAT(waits_, ElementsAre(milliseconds(10)));
}

}  // namespace
}  // namespace syncopate::worker
