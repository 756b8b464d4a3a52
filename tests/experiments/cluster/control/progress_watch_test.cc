#include "experiments/cluster/control/progress_watch.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using std::literals::chrono_literals::operator""ns;
using std::literals::chrono_literals::operator""s;

constexpr TimePoint kStart{100s};
constexpr Duration kAllowed = 30s, kMargin = 2s;

TEST(ProgressWatch, FindsWorkThatStandsStillForTheTimeoutAndTheMargin) {
  ProgressWatch watch(kMargin, kStart);
  EXPECT_EQ(watch.stands_still_for(0, false, kAllowed, kStart + 32s - 1ns), std::nullopt);
  EXPECT_EQ(watch.stands_still_for(0, false, kAllowed, kStart + 32s), 32s);
  EXPECT_EQ(watch.stands_still_for(0, false, kAllowed, kStart + 40s), 40s);
}

TEST(ProgressWatch, CountsFromTheLastChange) {
  ProgressWatch watch(kMargin, kStart);
  EXPECT_EQ(watch.stands_still_for(1, false, kAllowed, kStart + 31s), std::nullopt);
  EXPECT_EQ(watch.stands_still_for(1, false, kAllowed, kStart + 62s), std::nullopt);
  EXPECT_EQ(watch.stands_still_for(2, false, kAllowed, kStart + 64s), std::nullopt);
  EXPECT_EQ(watch.stands_still_for(2, false, kAllowed, kStart + 96s), 32s);
}

TEST(ProgressWatch, LeavesRestAloneAndCountsFromItsEnd) {
  ProgressWatch watch(kMargin, kStart);
  EXPECT_EQ(watch.stands_still_for(1, true, kAllowed, kStart + 1s), std::nullopt);
  EXPECT_EQ(watch.stands_still_for(1, true, kAllowed, kStart + 3600s), std::nullopt);
  EXPECT_EQ(watch.stands_still_for(2, false, kAllowed, kStart + 3601s), std::nullopt);
  EXPECT_EQ(watch.stands_still_for(2, false, kAllowed, kStart + 3633s), 32s);
}

TEST(ProgressWatch, JudgesByTheTimeoutAsItIsNow) {
  ProgressWatch watch(kMargin, kStart);
  EXPECT_EQ(watch.stands_still_for(0, false, kAllowed, kStart + 3s), std::nullopt);
  EXPECT_EQ(watch.stands_still_for(0, false, 1s, kStart + 3s), 3s);
}

}  // namespace
}  // namespace syncopate::experiments
