#include "experiments/cluster/host/control_group.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(ACoreQuota, IsTheTimeOfAPeriodOrAll) {
  EXPECT_EQ(quota_cores("150000 100000\n"), 1.5);
  EXPECT_EQ(quota_cores("50000\n 100000\n"), 0.5) << "of the first version";
  for (const char* text : {"max 100000", "", "max", "100000", "0 100000", "100000 0", "-1 100000", "-1\n 100000\n"}) {
    EXPECT_FALSE(quota_cores(text)) << text;
  }
}

TEST(Throttling, IsCountedInPeriods) {
  const auto second = throttling_in("usage_usec 41\nuser_usec 21\nnr_periods 120\nnr_throttled 30\nthrottled_usec 9\n");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->periods, 120);
  EXPECT_EQ(second->throttled, 30);
  const auto first = throttling_in("nr_periods 12\nnr_throttled 3\nthrottled_time 900\n");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->throttled, 3);
  EXPECT_FALSE(throttling_in("usage_usec 41\n"));
}

TEST(OomKills, AreCountedByBothVersions) {
  EXPECT_EQ(oom_kills_in("low 0\nhigh 0\nmax 17\noom 2\noom_kill 1\noom_group_kill 0\n"), 1);
  EXPECT_EQ(oom_kills_in("oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"), 4);
  EXPECT_FALSE(oom_kills_in(""));
}

}  // namespace
}  // namespace syncopate::experiments
