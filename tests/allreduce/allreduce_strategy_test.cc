#include "allreduce/allreduce_strategy.h"

#include <gtest/gtest.h>

#include <functional>

#include "allreduce/communication_thread.h"
#include "allreduce/schedule_collective.h"
#include "tests/support/cluster.h"

namespace syncopate::allreduce {
namespace {

using testing_support::connect_group;
using testing_support::run_ranks;

ParamLayout layout_of(std::int64_t last) {
  ParamLayout layout;
  layout.add("first", {100, 3});
  layout.add("second", {17});
  layout.add("third", {last});
  return layout;
}

// Runs body(strategy, rank) on every rank, with buckets so small that each tensor has its own.
void with_strategies(int size, const std::function<void(SyncStrategy&, int)>& body) {
  auto group = connect_group("inproc", size);
  const SteadyClock clock;
  run_ranks(size, [&](int rank) {
    const auto ring = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
    const auto strategy = make_allreduce_strategy(
        *ring, {.optimizer = {.kind = OptimizerKind::kSgd}, .bucket_bytes = 64, .timeout = std::chrono::seconds(60)},
        clock);
    body(*strategy, rank);
  });
}

TEST(AllReduceStrategy, AppliesTheMeanOfAllGradientsToTheChiefsWeights) {
  with_strategies(3, [](SyncStrategy& strategy, int rank) {
    const ParamLayout layout = layout_of(40);
    Result<ParamArenas> arenas = strategy.allocate(layout);
    ASSERT_TRUE(arenas.ok());
    std::fill(arenas->weights.begin(), arenas->weights.end(), rank == 0 ? 8.0f : -1.0f);
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    EXPECT_EQ(buckets->size(), 3u);
    for (int step = 0; step < 2; ++step) {
      strategy.begin_step({.step = step, .learning_rate = 0.5});
      for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) {
        const std::span<float> part = slice(arenas->gradients, (*buckets)[bucket]);
        std::fill(part.begin(), part.end(), static_cast<float>(3 * rank));  // mean: 3
        strategy.gradient_ready(bucket);
      }
      const Result<SyncStats> stats = strategy.finish_step();
      ASSERT_TRUE(stats.ok()) << stats.status().message();
      EXPECT_GT(stats->bytes_out, 0);
      EXPECT_EQ(stats->staleness_max, 0);
      for (float weight : arenas->weights) ASSERT_EQ(weight, 8.0f - 1.5f * static_cast<float>(step + 1));
    }
    EXPECT_TRUE(strategy.leave().ok());
  });
}

TEST(AllReduceStrategy, RefusesReplicasOfAnotherModelAndNamesThem) {
  with_strategies(2, [](SyncStrategy& strategy, int rank) {
    ASSERT_TRUE(strategy.allocate(layout_of(rank == 0 ? 40 : 41)).ok());
    const Status status = strategy.join().status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(rank == 0 ? "rank 1 has layout" : "rank 0 has layout"), std::string::npos);
  });
}

TEST(AllReduceStrategy, RefusesReplicasWithOtherBucketsAndNamesThem) {
  auto group = connect_group("inproc", 2);
  const SteadyClock clock;
  run_ranks(2, [&](int rank) {
    const auto ring = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
    const auto strategy = make_allreduce_strategy(
        *ring, {.bucket_bytes = rank == 0 ? 64u : 1u << 20, .timeout = std::chrono::seconds(60)}, clock);
    ASSERT_TRUE(strategy->allocate(layout_of(40)).ok());
    const Status status = strategy->join().status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(rank == 0 ? "rank 1 has buckets" : "rank 0 has buckets"), std::string::npos);
  });
}

TEST(AllReduceStrategy, ReportsASilentRankFromFinishStepOnceForAllBuckets) {
  auto group = connect_group("inproc", 2);
  const SteadyClock clock;
  run_ranks(2, [&](int rank) {
    CollectiveActivity activity;
    const auto ring = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
    const auto strategy = make_allreduce_strategy(
        *ring, {.bucket_bytes = 64, .timeout = std::chrono::seconds(2), .activity = &activity}, clock);
    ASSERT_TRUE(strategy->allocate(layout_of(40)).ok());
    const Result<std::vector<Range>> buckets = strategy->join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    if (rank == 1) return;  // its endpoint stays: to rank 0 it is silent, not lost
    strategy->begin_step({.step = 7, .learning_rate = 0.5});
    for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) strategy->gradient_ready(bucket);
    const Status status = strategy->finish_step().status();
    EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
    EXPECT_NE(status.message().find("step 7, bucket 0"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("rank 1"), std::string::npos) << status.message();
    // It is still in the operation that has failed, the first behind those of join.
    const CollectiveState state = activity.state(clock.now());
    EXPECT_TRUE(state.under_way);
    EXPECT_EQ(state.begun, 3);
    EXPECT_EQ(state.last.step, 7);
    EXPECT_EQ(state.last.bucket, 0u);
    EXPECT_EQ(state.last.buckets, buckets->size());
    EXPECT_EQ(state.last.bytes, static_cast<std::int64_t>(buckets->front().size() * sizeof(float)));
    EXPECT_GE(state.age, std::chrono::seconds(2));
  });
}

TEST(AllReduceStrategy, CountsItsOperationsForWhoWatches) {
  auto group = connect_group("inproc", 2);
  const SteadyClock clock;
  run_ranks(2, [&](int rank) {
    CollectiveActivity activity;
    const auto ring = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
    const auto strategy = make_allreduce_strategy(
        *ring, {.bucket_bytes = 64, .timeout = std::chrono::seconds(60), .activity = &activity}, clock);
    ASSERT_TRUE(strategy->allocate(layout_of(40)).ok());
    const Result<std::vector<Range>> buckets = strategy->join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    EXPECT_EQ(activity.state(clock.now()).begun, 2);
    strategy->begin_step({.step = 0, .learning_rate = 0.5});
    for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) strategy->gradient_ready(bucket);
    ASSERT_TRUE(strategy->finish_step().ok());
    EXPECT_EQ(activity.state(clock.now()).begun, 2 + static_cast<std::int64_t>(buckets->size()));
    EXPECT_FALSE(activity.state(clock.now()).under_way);
    EXPECT_TRUE(strategy->leave().ok());
    EXPECT_EQ(activity.state(clock.now()).last.stage, CollectiveOperation::Stage::kLeaving);
  });
}

TEST(CommunicationThread, DoesAllWorkOnceAndInOrderWhicheverThreadDoesIt) {
  CommunicationThread thread;
  std::vector<int> done;  // guarded by the thread's own order
  constexpr int kPieces = 2000;
  std::uint64_t ticket = 0;
  for (int i = 0; i < kPieces; ++i) {
    ticket = thread.submit([&done, i] { done.push_back(i); });
    if (i % 7 == 0) {
      thread.wait_for(ticket);
      ASSERT_EQ(done.size(), static_cast<std::size_t>(i + 1));
    }
  }
  thread.wait_for(ticket);
  ASSERT_EQ(done.size(), static_cast<std::size_t>(kPieces));
  for (int i = 0; i < kPieces; ++i) ASSERT_EQ(done[static_cast<std::size_t>(i)], i);
}

TEST(CommunicationThread, EndsWithWorkLeftInItsQueue) {
  int done = 0;
  {
    CommunicationThread thread;
    for (int i = 0; i < 100; ++i) thread.submit([&done] { ++done; });
  }
  EXPECT_LE(done, 100);
}

}  // namespace
}  // namespace syncopate::allreduce
