#include "experiments/cluster/control/step_batch.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(StepBatch, HandsOverEachRecordOnceAndInOrder) {
  StepBatch batch;
  EXPECT_FALSE(batch.take()) << "nothing to send";
  batch.add({.step = 4}, 0);
  batch.add({.step = 5}, 1);
  const std::optional<control::ToCoordinator> message = batch.take();
  ASSERT_TRUE(message);
  ASSERT_EQ(message->steps().steps_size(), 2);
  EXPECT_EQ(message->steps().steps(0).step(), 4);
  EXPECT_EQ(message->steps().steps(1).step(), 5);
  EXPECT_EQ(message->steps().steps(0).membership_epoch(), 0);
  EXPECT_EQ(message->steps().steps(1).membership_epoch(), 1);
  EXPECT_FALSE(batch.take());
  batch.add({.step = 6}, 1);
  EXPECT_EQ(batch.take()->steps().steps_size(), 1);
}

}  // namespace
}  // namespace syncopate::experiments
