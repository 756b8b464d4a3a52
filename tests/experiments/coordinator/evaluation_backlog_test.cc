#include "experiments/coordinator/evaluation_backlog.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(EvaluationBacklog, HasRoomForTwoWhateverTheirSize) {
  EvaluationBacklog backlog(10);
  backlog.on_snapshot(1000);
  EXPECT_TRUE(backlog.has_room());
  backlog.on_snapshot(1000);
  EXPECT_FALSE(backlog.has_room());
}

TEST(EvaluationBacklog, HasRoomForAsManyMoreAsTheirBytesAllow) {
  EvaluationBacklog backlog(40);
  for (int i = 0; i < 3; ++i) backlog.on_snapshot(10);
  EXPECT_TRUE(backlog.has_room());
  backlog.on_snapshot(10);
  EXPECT_FALSE(backlog.has_room());
  backlog.on_evaluation();
  EXPECT_TRUE(backlog.has_room());
  EXPECT_EQ(backlog.waiting(), 3u);
}

TEST(EvaluationBacklog, TakesNoEvaluationThatNothingWaitedFor) {
  EvaluationBacklog backlog(40);
  backlog.on_evaluation();
  EXPECT_EQ(backlog.waiting(), 0u);
}

}  // namespace
}  // namespace syncopate::experiments
