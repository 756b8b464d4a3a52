#include "allreduce/strategy/allreduce_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "allreduce/collective/communication_thread.h"
#include "allreduce/collective/schedule_collective.h"
#include "allreduce/strategy/bucket_search.h"
#include "common/os/usable_cores.h"
#include "tests/support/cluster.h"
#include "tests/support/direct_group.h"
#include "tests/support/one_core.h"

namespace syncopate::allreduce {
namespace {

using testing_support::connect_group;
using testing_support::run_ranks;

ParamLayout three_tensors(std::int64_t last) {
  ParamLayout layout;
  layout.add("first", {100, 3});
  layout.add("second", {17});
  layout.add("third", {last});
  return layout;
}

// Buckets so small that each tensor has its own.
AllReduceOptions options_with(bool overlap) {
  return {.optimizer = {.kind = OptimizerKind::kSgd},
          .bucket_bytes = 64,
          .overlap = overlap,
          .timeout = std::chrono::seconds(60)};
}

// Runs body(strategy, rank) on every rank.
void with_strategies(int size, const AllReduceOptions& options, const std::function<void(SyncStrategy&, int)>& body) {
  auto group = connect_group("inproc", size);
  const SteadyClock clock;
  run_ranks(size, [&](int rank) {
    const auto ring = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
    const auto strategy = make_allreduce_strategy(*ring, options, clock);
    body(*strategy, rank);
  });
}

class OverlapOnAndOff : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(AllReduceStrategy, OverlapOnAndOff, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "on" : "off"; });

TEST_P(OverlapOnAndOff, AppliesTheMeanOfAllGradientsToTheChiefsWeights) {
  with_strategies(3, options_with(GetParam()), [](SyncStrategy& strategy, int rank) {
    const ParamLayout layout = three_tensors(40);
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

TEST(AllReduceStrategy, RanksThatMakeAStepAtOtherRatesAreToldBeforeAnyUpdate) {
  for (const char* const codec : {"none", "int8"}) {
    AllReduceOptions options = options_with(true);
    options.codec = *parse_codec(codec);
    options.agrees_on_rates = true;
    with_strategies(3, options, [](SyncStrategy& strategy, int rank) {
      const ParamLayout layout = three_tensors(40);
      Result<ParamArenas> arenas = strategy.allocate(layout);
      ASSERT_TRUE(arenas.ok());
      const Result<std::vector<Range>> buckets = strategy.join();
      ASSERT_TRUE(buckets.ok()) << buckets.status().message();
      for (int step = 0; step < 2; ++step) {
        strategy.begin_step({.step = step, .learning_rate = step == 1 && rank == 2 ? 0.25 : 0.5});
        for (const TensorSpec& tensor : layout.tensors()) {
          std::ranges::fill(slice(arenas->gradients, tensor.range), 1.0f);
        }
        for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) strategy.gradient_ready(bucket);
        const TimePoint begin = SteadyClock().now();
        const Status status = strategy.finish_step().status();
        EXPECT_LT(SteadyClock().now() - begin, std::chrono::seconds(60)) << "it waited for a rank that was gone";
        if (step == 0) {
          ASSERT_TRUE(status.ok()) << status.message();
          continue;
        }
        EXPECT_EQ(status.code(), Code::kInvalidArgument);
        EXPECT_THAT(status.message(),
                    testing::HasSubstr(rank == 2 ? "rank 0 makes this step at a learning rate of 0.5, rank 2 at 0.25"
                                                 : "rank 2 makes this step at a learning rate of 0.25, rank "));
      }
      for (const TensorSpec& tensor : layout.tensors()) {
        for (const float weight : slice(arenas->weights, tensor.range)) ASSERT_NEAR(weight, -0.5f, 0.01f);
      }
    });
  }
}

// Time that a test adds to the real one, so that deadlines still mean something.
class PushedClock final : public Clock {
 public:
  TimePoint now() const override { return steady_.now() + pushed_.load(); }
  void push(Duration by) { pushed_ = pushed_.load() + by; }

 private:
  SteadyClock steady_;
  std::atomic<Duration> pushed_{};
};

// Three tensors of 40 KiB: buckets of 64 KiB hold one of them, of 256 KiB all. A step is made 20 s longer for each
// bucket on rank 0, and 30 s longer for a single one on rank 1, so that together, though not for rank 0, several are
// better.
TEST(AllReduceStrategy, SettlesOnTheBucketsWithTheShortestStepsOfAllRanks) {
  constexpr int kRanks = 2;
  auto group = connect_group("inproc", kRanks);
  std::vector<std::string> findings(kRanks);
  run_ranks(kRanks, [&](int rank) {
    PushedClock clock;
    ParamLayout layout;
    for (const char* name : {"first", "second", "third"}) layout.add(name, {10 * 1024});
    const auto ring = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
    AllReduceOptions options{.optimizer = {.kind = OptimizerKind::kSgd}, .bucket_bytes = 0};
    options.on_search_end = [&](const std::string& finding) { findings[static_cast<std::size_t>(rank)] = finding; };
    const auto strategy = make_allreduce_strategy(*ring, options, clock);
    const Result<ParamArenas> arenas = strategy->allocate(layout);
    ASSERT_TRUE(arenas.ok());
    ASSERT_EQ(strategy->join()->size(), 3u) << "one a tensor";
    std::size_t buckets = 0;
    strategy->on_weights([&](Range range) {
      ++buckets;
      const bool whole = range.size() == layout.size();
      if (rank == 0) clock.push(std::chrono::seconds(20));
      if (rank == 1 && whole) clock.push(std::chrono::seconds(50));
    });
    std::set<std::size_t> tried, settled;  // numbers of buckets
    const int searching = BucketSearch(2).steps();
    for (int step = 0; step < searching + 3; ++step) {
      buckets = 0;
      std::ranges::fill(arenas->gradients, static_cast<float>(rank));
      strategy->begin_step({.step = step, .learning_rate = 1});
      for (std::size_t grain = 0; grain < 3; ++grain) strategy->gradient_ready(grain);
      ASSERT_TRUE(strategy->finish_step().ok());
      ASSERT_EQ(arenas->weights.front(), -0.5f * static_cast<float>(step + 1));
      ASSERT_EQ(arenas->weights.back(), arenas->weights.front());
      (step < searching ? tried : settled).insert(buckets);
      EXPECT_EQ(findings[static_cast<std::size_t>(rank)].empty(), step < searching - 1) << step;
    }
    EXPECT_EQ(tried, (std::set<std::size_t>{1, 3}));
    EXPECT_EQ(settled, (std::set<std::size_t>{3}));
    EXPECT_TRUE(strategy->leave().ok());
  });
  EXPECT_THAT(findings[0],
              testing::MatchesRegex("0.0625 MiB; a step took 30.* ms with 0.0625 MiB, 35.* ms with 0.25 MiB"));
  EXPECT_EQ(findings[0], findings[1]);
}

TEST(AllReduceStrategy, SaysWhereARunWasTooShortToFindABucketSize) {
  auto group = connect_group("inproc", 1);
  const SteadyClock clock;
  const auto ring = make_schedule_collective(*group[0]);
  std::string finding;
  const auto strategy = make_allreduce_strategy(
      *ring, {.bucket_bytes = 0, .on_search_end = [&](const auto& text) { finding = text; }}, clock);
  ASSERT_TRUE(strategy->allocate(three_tensors(1 << 20)).ok());
  ASSERT_TRUE(strategy->join().ok());
  EXPECT_TRUE(strategy->leave().ok());
  EXPECT_EQ(finding.substr(0, 10), "not found:") << finding;
}

TEST(AllReduceStrategy, RefusesReplicasOfAnotherModelAndNamesThem) {
  with_strategies(2, options_with(true), [](SyncStrategy& strategy, int rank) {
    ASSERT_TRUE(strategy.allocate(three_tensors(rank == 0 ? 40 : 41)).ok());
    const Status status = strategy.join().status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(rank == 0 ? "rank 1 has layout" : "rank 0 has layout"), std::string::npos);
  });
}

TEST_P(OverlapOnAndOff, AppliesTheMeanOfCompressedGradients) {
  AllReduceOptions options = options_with(GetParam());
  options.codec = *parse_codec("fp16");
  with_strategies(3, options, [](SyncStrategy& strategy, int rank) {
    Result<ParamArenas> arenas = strategy.allocate(three_tensors(40));
    ASSERT_TRUE(arenas.ok());
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    strategy.begin_step({.step = 0, .learning_rate = 1});
    for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) {
      // 2049 has one bit more than fp16, and becomes 2048.
      std::ranges::fill(slice(arenas->gradients, (*buckets)[bucket]), rank == 2 ? 2049.0f : 512.0f);
      strategy.gradient_ready(bucket);
    }
    const Result<SyncStats> stats = strategy.finish_step();
    ASSERT_TRUE(stats.ok()) << stats.status().message();
    EXPECT_GT(stats->codec, Duration::zero());
    EXPECT_LE(stats->codec, stats->communication);
    EXPECT_EQ(arenas->weights.front(), -1024.0f);
    EXPECT_TRUE(strategy.leave().ok());
  });
}

TEST(AllReduceStrategy, RefusesReplicasWithAnotherCodec) {
  auto group = connect_group("inproc", 2);
  const SteadyClock clock;
  run_ranks(2, [&](int rank) {
    const auto ring = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
    const auto strategy = make_allreduce_strategy(
        *ring, {.codec = *parse_codec(rank == 0 ? "int8" : "sign"), .timeout = std::chrono::seconds(60)}, clock);
    ASSERT_TRUE(strategy->allocate(three_tensors(40)).ok());
    const Status status = strategy->join().status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(rank == 0 ? "rank 1 has collective" : "rank 0 has collective"), std::string::npos)
        << status.message();
  });
}

TEST(AllReduceStrategy, RefusesReplicasWithOtherBucketsAndNamesThem) {
  auto group = connect_group("inproc", 2);
  const SteadyClock clock;
  run_ranks(2, [&](int rank) {
    const auto ring = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
    const auto strategy = make_allreduce_strategy(
        *ring, {.bucket_bytes = rank == 0 ? 64u : 1u << 20, .timeout = std::chrono::seconds(60)}, clock);
    ASSERT_TRUE(strategy->allocate(three_tensors(40)).ok());
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
    ASSERT_TRUE(strategy->allocate(three_tensors(40)).ok());
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
    ASSERT_TRUE(strategy->allocate(three_tensors(40)).ok());
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

TEST(CommunicationThread, LetsSeveralThreadsWaitWhicheverDoesTheWork) {
  CommunicationThread thread;
  for (int round = 0; round < 2000; ++round) {
    const std::uint64_t first = thread.submit([] {}), second = thread.submit([] {});
    std::jthread other([&] { thread.wait_for(first); });
    thread.wait_for(second);
    EXPECT_EQ(thread.done(), second);
  }
}

// Whichever thread does it: here each has some of it, in no order.
TEST(CommunicationThread, FlushesDenormalsInAllOfItsWork) {
  CommunicationThread thread;
  std::atomic<float> least = std::numeric_limits<float>::min();
  int flushed = 0;
  constexpr int kPieces = 2000;
  for (int i = 0; i < kPieces; ++i) {
    const std::uint64_t ticket = thread.submit([&] { flushed += least.load() * 0.5f == 0 ? 1 : 0; });
    if (i % 2 == 1) thread.wait_for(ticket);
  }
  EXPECT_EQ(flushed, kPieces);
  EXPECT_NE(least.load() * 0.5f, 0) << "the caller's own work is as it was";
}

// Threads that never run, so that a caller does all work itself; their monitors count who would be woken.
class AbsentThreads final : public Threads {
 public:
  const Clock& clock() const override { return os_threads().clock(); }
  std::unique_ptr<Monitor> make_monitor() override { return std::make_unique<CountingMonitor>(wakes); }
  std::unique_ptr<Handle> start(const std::string&, std::function<void()>, Priority) override { return nullptr; }
  int wakes = 0;

 private:
  class CountingMonitor final : public Monitor {
   public:
    explicit CountingMonitor(int& wakes) : wakes_(wakes) {}
    void lock() override {}
    void unlock() override {}
    void wait_until(TimePoint) override { FAIL() << "nobody is there to be waited for"; }
    void notify_all() override { ++wakes_; }

   private:
    int& wakes_;
  };
};

TEST(CommunicationThread, IsWokenForWorkBehindOnlyIfTheCallerStaysAwayLongEnough) {
  constexpr Duration kWorth = std::chrono::milliseconds(1);
  AbsentThreads threads;
  CommunicationThread thread(threads, kWorth);
  for (const Duration away : {kWorth / 2, kWorth}) {
    const std::uint64_t first = thread.submit([] {});
    thread.submit([] {});
    threads.wakes = 0;
    thread.wait_for(first, away);
    EXPECT_EQ(threads.wakes, away < kWorth ? 0 : 1);
    thread.wait_for(first + 1, away);
    EXPECT_EQ(threads.wakes, away < kWorth ? 0 : 1) << "nothing is left";
  }
}

TEST(CommunicationThread, LeavesWorkThatMayWaitToTheCaller) {
  AbsentThreads threads;
  CommunicationThread thread(threads);
  bool done = false;
  const std::uint64_t ticket = thread.submit([&done] { done = true; }, CommunicationThread::Begin::kWhenWaitedFor);
  EXPECT_FALSE(done);
  thread.wait_for(ticket);
  EXPECT_TRUE(done);
  EXPECT_EQ(threads.wakes, 0);
}

// Sums in shared memory, of ranks that leave no core: their threads are never woken. With a core left they are.
TEST(AllReduceStrategy, SumsBesideComputeOnlyOnACoreThatIsLeft) {
  const auto wakes_of = [](bool leaves_a_core) {
    const auto group = testing_support::connect_direct(1);
    std::optional<testing_support::OneCore> one_core;
    if (!leaves_a_core) one_core.emplace();
    AbsentThreads threads;
    AllReduceOptions options = options_with(true);
    options.threads = &threads;
    const SteadyClock clock;
    const auto strategy = make_allreduce_strategy(*group[0], options, clock);
    EXPECT_TRUE(strategy->allocate(three_tensors(40)).ok());
    EXPECT_TRUE(strategy->join().ok());
    threads.wakes = 0;
    strategy->begin_step({.step = 0, .learning_rate = 0.5});
    for (std::size_t bucket = 0; bucket < 3; ++bucket) strategy->gradient_ready(bucket);
    EXPECT_TRUE(strategy->finish_step().ok());
    return threads.wakes;
  };
  EXPECT_EQ(wakes_of(false), 0);
  if (usable_cores().size() < 2) GTEST_SKIP() << "this machine has one core";
  EXPECT_GE(wakes_of(true), 3);
}

// Work that is left behind is done, though nobody waits for it.
TEST(CommunicationThread, DoesWhatIsLeftBehindWorkThatWasWaitedFor) {
  CommunicationThread thread(os_threads(), std::chrono::hours(1));
  std::promise<void> done;
  const std::uint64_t first = thread.submit([] {});
  thread.submit([&done] { done.set_value(); });
  thread.wait_for(first);
  EXPECT_EQ(done.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
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
