#include "experiments/control/snapshot_queue.h"

#include <gtest/gtest.h>

#include <future>

namespace syncopate::experiments {
namespace {

TEST(SnapshotQueue, GivesThemInTheOrderInWhichTheyCame) {
  SnapshotQueue queue;
  queue.push({.epoch = 2, .weights = {1, 2}});
  queue.push({.epoch = 1, .weights = {}});
  EXPECT_EQ(queue.pop()->epoch, 2);
  EXPECT_EQ(queue.pop()->epoch, 1);
}

TEST(SnapshotQueue, WaitsForTheNext) {
  SnapshotQueue queue;
  auto popping = std::async(std::launch::async, [&] { return queue.pop(); });
  queue.push({.epoch = 5, .weights = {}});
  EXPECT_EQ(popping.get()->epoch, 5);
}

TEST(SnapshotQueue, StillGivesWhatHadComeWhenItWasClosed) {
  SnapshotQueue queue;
  queue.push({.epoch = 5, .weights = {}});
  queue.close();
  EXPECT_EQ(queue.pop()->epoch, 5);
  EXPECT_EQ(queue.pop().status().code(), Code::kCancelled);
}

TEST(SnapshotQueue, EndsAWaitWhenItIsClosed) {
  SnapshotQueue queue;
  auto popping = std::async(std::launch::async, [&] { return queue.pop(); });
  queue.close();
  EXPECT_EQ(popping.get().status().code(), Code::kCancelled);
}

}  // namespace
}  // namespace syncopate::experiments
