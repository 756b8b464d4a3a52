#include "experiments/cluster/control/snapshot_queue.h"

#include <gtest/gtest.h>

#include <future>

namespace syncopate::experiments {
namespace {

TEST(SnapshotQueue, GivesThemInTheOrderInWhichTheyCame) {
  SnapshotQueue queue;
  queue.push({.point = 2, .weights = {1, 2}});
  queue.push({.point = 1, .weights = {}});
  EXPECT_EQ(queue.pop()->point, 2);
  EXPECT_EQ(queue.pop()->point, 1);
}

TEST(SnapshotQueue, WaitsForTheNext) {
  SnapshotQueue queue;
  auto popping = std::async(std::launch::async, [&] { return queue.pop(); });
  queue.push({.point = 5, .weights = {}});
  EXPECT_EQ(popping.get()->point, 5);
}

TEST(SnapshotQueue, StillGivesWhatHadComeWhenItWasClosed) {
  SnapshotQueue queue;
  queue.push({.point = 5, .weights = {}});
  queue.close();
  EXPECT_EQ(queue.pop()->point, 5);
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
