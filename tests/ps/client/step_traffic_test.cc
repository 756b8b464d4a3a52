#include "ps/client/step_traffic.h"

#include <gtest/gtest.h>

namespace syncopate::ps {
namespace {

constexpr Duration kMs = std::chrono::milliseconds(1);

TEST(StepTraffic, SaysForHowLongTheLastShardWasTheOnlyOneWaitedFor) {
  ManualClock clock;
  StepTraffic traffic(clock);
  traffic.heard(1);  // during backward
  clock.advance(5 * kMs);
  traffic.begin_wait();
  for (const int shard : {0, 1, 0, 1, 1}) {
    clock.advance(2 * kMs);
    traffic.heard(shard);
  }
  const SyncStats stats = traffic.take();
  EXPECT_EQ(stats.last_shard, 1);
  EXPECT_EQ(stats.last_shard_alone, 4 * kMs) << "since shard 0 was heard last";
  EXPECT_EQ(traffic.take().last_shard, -1) << "a step that waits for none";
}

TEST(StepTraffic, CountsTheWholeWaitForAShardThatWasAlone) {
  ManualClock clock;
  StepTraffic traffic(clock);
  traffic.begin_wait();
  clock.advance(7 * kMs);
  traffic.heard(0);
  EXPECT_EQ(traffic.take().last_shard_alone, 7 * kMs);
}

}  // namespace
}  // namespace syncopate::ps
