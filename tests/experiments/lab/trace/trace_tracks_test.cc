#include "experiments/lab/trace/trace_tracks.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TimePoint time_at(int time) { return TimePoint(Duration(time)); }

TEST(NestedLanes, KeepWhatLiesWithinOnOneTrack) {
  NestedLanes lanes;
  EXPECT_EQ(lanes.take(time_at(0), time_at(100)), 0U);
  EXPECT_EQ(lanes.take(time_at(0), time_at(40)), 0U);
  EXPECT_EQ(lanes.take(time_at(10), time_at(10)), 0U);
  EXPECT_EQ(lanes.take(time_at(40), time_at(100)), 0U);
  EXPECT_EQ(lanes.take(time_at(100), time_at(120)), 0U);
}

TEST(NestedLanes, MoveWhatOnlyOverlapsToAnother) {
  NestedLanes lanes;
  EXPECT_EQ(lanes.take(time_at(0), time_at(10)), 0U);
  EXPECT_EQ(lanes.take(time_at(5), time_at(15)), 1U);
  EXPECT_EQ(lanes.take(time_at(6), time_at(9)), 0U);
  EXPECT_EQ(lanes.take(time_at(7), time_at(20)), 2U);
  EXPECT_EQ(lanes.take(time_at(15), time_at(30)), 0U);
}

TEST(SeparateLanes, LetNoTwoOverlap) {
  SeparateLanes lanes;
  EXPECT_EQ(lanes.take(time_at(0), time_at(10)), 0U);
  EXPECT_EQ(lanes.take(time_at(2), time_at(5)), 1U);
  EXPECT_EQ(lanes.take(time_at(4), time_at(6)), 2U);
  EXPECT_EQ(lanes.take(time_at(5), time_at(7)), 1U);
  EXPECT_EQ(lanes.take(time_at(10), time_at(11)), 0U);
}

}  // namespace
}  // namespace syncopate::experiments
