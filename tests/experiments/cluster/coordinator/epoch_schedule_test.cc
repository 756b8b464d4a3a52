#include "experiments/cluster/coordinator/epoch_schedule.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(EpochSchedule, GoesOnWhereThereIsNoTarget) {
  EpochSchedule epochs(0);
  epochs.on_evaluation(1);
  EXPECT_FALSE(epochs.target_reached());
  EXPECT_TRUE(epochs.go_on(0));
}

TEST(EpochSchedule, DecidesEachEpochOnceForAll) {
  EpochSchedule epochs(0.95);
  epochs.on_evaluation(0.9499);
  EXPECT_TRUE(epochs.go_on(1));
  epochs.on_evaluation(0.95);
  EXPECT_TRUE(epochs.target_reached());
  EXPECT_TRUE(epochs.go_on(1)) << "as for those who have asked before";
  EXPECT_FALSE(epochs.go_on(2));
  epochs.on_evaluation(0.5);
  EXPECT_TRUE(epochs.target_reached()) << "a later dip takes nothing back";
}

TEST(EpochSchedule, HoldsWhoAsksUntilTrainingBegins) {
  EpochSchedule epochs(0);
  EXPECT_FALSE(epochs.has_begun());
  epochs.hold({.process = 3, .epoch = 0});
  epochs.hold({.process = 1, .epoch = 2});
  const std::vector<EpochSchedule::Question> held = epochs.begin();
  EXPECT_TRUE(epochs.has_begun());
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held[0].process, 3u);
  EXPECT_EQ(held[1].process, 1u);
  EXPECT_EQ(held[1].epoch, 2);
}

TEST(EpochSchedule, ForgetsWhoHasAskedInAnEarlierMembership) {
  EpochSchedule epochs(0);
  epochs.hold({.process = 3, .epoch = 0});
  epochs.begin_membership();
  EXPECT_TRUE(epochs.begin().empty());
}

}  // namespace
}  // namespace syncopate::experiments
