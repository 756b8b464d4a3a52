#include "experiments/cluster/control/progress_watch.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using std::literals::chrono_literals::operator""ns;
using std::literals::chrono_literals::operator""s;

constexpr TimePoint kBegin{100s};
constexpr Duration kTimeout = 30s, kMargin = 2s;

TEST(ProgressWatch, FindsWorkThatStandsStillForTheTimeoutAndTheMargin) {
  ProgressWatch watch(kMargin, kBegin);
  EXPECT_EQ(watch.stands_still_for(0, false, kTimeout, kBegin + 32s - 1ns), std::nullopt);
  EXPECT_EQ(watch.stands_still_for(0, false, kTimeout, kBegin + 32s), 32s);
  EXPECT_EQ(watch.stands_still_for(0, false, kTimeout, kBegin + 40s), 40s);
}

TEST(ProgressWatch, CountsFromTheLastChange) {
  ProgressWatch watch(kMargin, kBegin);
  EXPECT_EQ(watch.stands_still_for(1, false, kTimeout, kBegin + 31s), std::nullopt);
  EXPECT_EQ(watch.stands_still_for(1, false, kTimeout, kBegin + 62s), std::nullopt);
  EXPECT_EQ(watch.stands_still_for(2, false, kTimeout, kBegin + 64s), std::nullopt);
  EXPECT_EQ(watch.stands_still_for(2, false, kTimeout, kBegin + 96s), 32s);
}

TEST(ProgressWatch, LeavesRestAloneAndCountsFromItsEnd) {
  ProgressWatch watch(kMargin, kBegin);
  EXPECT_EQ(watch.stands_still_for(1, true, kTimeout, kBegin + 1s), std::nullopt);
  EXPECT_EQ(watch.stands_still_for(1, true, kTimeout, kBegin + 3600s), std::nullopt);
  EXPECT_EQ(watch.stands_still_for(2, false, kTimeout, kBegin + 3601s), std::nullopt);
  EXPECT_EQ(watch.stands_still_for(2, false, kTimeout, kBegin + 3633s), 32s);
}

TEST(ProgressWatch, JudgesByTheTimeoutAsItIsNow) {
  ProgressWatch watch(kMargin, kBegin);
  EXPECT_EQ(watch.stands_still_for(0, false, kTimeout, kBegin + 3s), std::nullopt);
  EXPECT_EQ(watch.stands_still_for(0, false, 1s, kBegin + 3s), 3s);
}

}  // namespace
}  // namespace syncopate::experiments
