#include "experiments/lab/compare/row_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(TimeLeft, IsNotKnownBeforeTheFirstRun) { EXPECT_EQ(TimeLeft({2, 2}).seconds(), std::nullopt); }

TEST(TimeLeft, TakesTheMeanOfAllForRowsThatHaveNotRun) {
  TimeLeft left({2, 2, 2});
  left.ran(0, 10);
  EXPECT_EQ(left.seconds(), 10 + 2 * 10 + 2 * 10);
  left.ran(1, 30);
  EXPECT_EQ(left.seconds(), 10 + 30 + 2 * 20);
}

TEST(TimeLeft, TakesEachRowsOwnMeanAndEndsAtNothing) {
  TimeLeft left({2, 1});
  left.ran(0, 10), left.ran(1, 4);
  EXPECT_EQ(left.seconds(), 10);
  left.ran(0, 20);
  EXPECT_EQ(left.seconds(), 0);
}

TEST(TimeLeft, CountsNoRunOfARowThatIsLeftOut) {
  TimeLeft left({3, 2});
  left.ran(0, 1), left.ran(1, 5);
  left.leave_out(0);
  EXPECT_EQ(left.seconds(), 5);
}

}  // namespace
}  // namespace syncopate::experiments
