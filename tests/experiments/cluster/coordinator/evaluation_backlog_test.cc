#include "experiments/cluster/coordinator/evaluation_backlog.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(EvaluationBacklog, HasRoomForTwoWhateverTheirSize) {
  EvaluationBacklog backlog(10);
  backlog.on_snapshot(0, false, 1000);
  EXPECT_TRUE(backlog.has_room());
  backlog.on_snapshot(1, false, 1000);
  EXPECT_FALSE(backlog.has_room());
}

TEST(EvaluationBacklog, HasRoomForAsManyMoreAsTheirBytesAllow) {
  EvaluationBacklog backlog(40);
  for (int epoch = 0; epoch < 3; ++epoch) backlog.on_snapshot(epoch, false, 10);
  EXPECT_TRUE(backlog.has_room());
  backlog.on_snapshot(3, false, 10);
  EXPECT_FALSE(backlog.has_room());
  EXPECT_TRUE(backlog.on_evaluation(0, false));
  EXPECT_TRUE(backlog.has_room());
  EXPECT_EQ(backlog.waiting(), 3u);
}

TEST(EvaluationBacklog, TakesNoEvaluationThatNothingWaitedFor) {
  EvaluationBacklog backlog(40);
  EXPECT_FALSE(backlog.on_evaluation(0, false));
  backlog.on_snapshot(0, false, 10);
  EXPECT_FALSE(backlog.on_evaluation(0, true));  // of the final weights
  EXPECT_TRUE(backlog.on_evaluation(0, false));
  EXPECT_FALSE(backlog.on_evaluation(0, false));  // twice
  EXPECT_EQ(backlog.waiting(), 0u);
}

TEST(EvaluationBacklog, HasNoRoomForMoreThanARunShouldWaitFor) {
  EvaluationBacklog backlog(std::size_t{1} << 30);
  for (std::size_t i = 0; i < EvaluationBacklog::kMostWaiting; ++i) {
    EXPECT_TRUE(backlog.has_room());
    backlog.on_snapshot(static_cast<std::int64_t>(i), false, 1);
  }
  EXPECT_FALSE(backlog.has_room());
}

TEST(EvaluationBacklog, SaysWhatWaits) {
  EvaluationBacklog backlog(40);
  EXPECT_EQ(backlog.waiting_text(), "");
  backlog.on_snapshot(2, false, 10);
  EXPECT_EQ(backlog.waiting_text(), "1 snapshot");
  backlog.on_snapshot(3, false, 10);
  backlog.on_snapshot(2, true, 10);
  EXPECT_EQ(backlog.waiting_text(), "2 snapshots and the final weights");
  EXPECT_EQ(backlog.missing_text(), "");
}

TEST(EvaluationBacklog, SaysWhatIsMissingOnceNobodyEvaluates) {
  EvaluationBacklog backlog(40);
  backlog.on_snapshot(2, false, 10);
  backlog.on_snapshot(3, false, 10);
  EXPECT_EQ(backlog.missing_text(), "");
  backlog.give_up();
  EXPECT_EQ(backlog.waiting(), 0u);
  EXPECT_EQ(backlog.missing_text(), "2 snapshots");
  backlog.on_snapshot(4, false, 10);
  EXPECT_FALSE(backlog.is_final_missing());
  backlog.on_snapshot(8, true, 10);
  EXPECT_EQ(backlog.missing_text(), "3 snapshots and the final weights");
  EXPECT_TRUE(backlog.is_final_missing());
}

}  // namespace
}  // namespace syncopate::experiments
