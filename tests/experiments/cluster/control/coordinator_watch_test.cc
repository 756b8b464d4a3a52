#include "experiments/cluster/control/coordinator_watch.h"

#include <gtest/gtest.h>

#include "experiments/cluster/control/attention.h"

namespace syncopate::experiments {
namespace {

using std::literals::chrono_literals::operator""ns;
using std::literals::chrono_literals::operator""s;

constexpr TimePoint kBegin{100s};
constexpr Duration kTimeout = 30s;

TEST(CoordinatorWatch, SaysOnceThatTheCoordinatorHasBeenSilentForTheTimeout) {
  CoordinatorWatch watch(kBegin);
  EXPECT_EQ(watch.falls_silent(kTimeout, kBegin + 30s - 1ns), std::nullopt);
  EXPECT_EQ(watch.falls_silent(kTimeout, kBegin + 30s), 30s);
  EXPECT_EQ(watch.falls_silent(kTimeout, kBegin + 31s), std::nullopt);
}

TEST(CoordinatorWatch, CountsFromWhatWasHeardLast) {
  CoordinatorWatch watch(kBegin);
  watch.on_heard(kBegin + 20s);
  EXPECT_EQ(watch.falls_silent(kTimeout, kBegin + 49s), std::nullopt);
  EXPECT_EQ(watch.falls_silent(kTimeout, kBegin + 52s), 32s);
}

TEST(CoordinatorWatch, ForgivesSilenceToWhichNobodyListened) {
  CoordinatorWatch watch(kBegin);
  Attention attention(kBegin);
  watch.forgive(attention.absence(kBegin + 1s));
  watch.forgive(attention.absence(kBegin + 61s));  // the machine stood still
  EXPECT_EQ(watch.falls_silent(kTimeout, kBegin + 61s), std::nullopt);
  EXPECT_EQ(watch.falls_silent(kTimeout, kBegin + 90s), 30s);
}

TEST(CoordinatorWatch, JudgesByTheTimeoutAsItIsNow) {
  CoordinatorWatch watch(kBegin);
  EXPECT_EQ(watch.falls_silent(kTimeout, kBegin + 2s), std::nullopt);
  EXPECT_EQ(watch.falls_silent(1s, kBegin + 2s), 2s);
}

}  // namespace
}  // namespace syncopate::experiments
