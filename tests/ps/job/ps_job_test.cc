// Workers and shards together, over every wire.
#include "tests/ps/job/ps_job.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/every_consistency.h"

namespace syncopate::ps {
namespace {

using testing::Each;
using testing::HasSubstr;

void fill(std::span<float> values, float value) { std::fill(values.begin(), values.end(), value); }

std::vector<float> initial_weights(std::size_t size) {
  std::vector<float> weights(size);
  make_gradient(1000, 0, weights);
  return weights;
}

// What `steps` synchronous steps of `workers` come to, without any network.
std::vector<float> oracle(const OptimizerConfig& config, int workers, std::int64_t steps, std::size_t size) {
  std::vector<float> weights = initial_weights(size), sum(size), gradient(size);
  OptimizerState state(config, size);
  for (std::int64_t i = 0; i < steps; ++i) {
    make_gradient(0, i, sum);
    for (int rank = 1; rank < workers; ++rank) {
      make_gradient(rank, i, gradient);
      for (std::size_t at = 0; at < size; ++at) sum[at] += gradient[at];
    }
    Optimizer(config).apply(
        weights, sum, state, 0,
        {.learning_rate = 0.1f, .gradient_scale = 1.0f / static_cast<float>(workers), .number = i + 1});
  }
  return weights;
}

class PsJobOverEveryWire : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Wire, PsJobOverEveryWire, testing::ValuesIn(testing_support::all_wires()),
                         [](const auto& wire) { return wire.param; });

TEST_P(PsJobOverEveryWire, SyncEqualsOneLocalOptimizerBitByBit) {
  constexpr std::int64_t kSteps = 5;
  const ParamLayout layout = small_layout();
  for (const auto kind : {OptimizerKind::kSgd, OptimizerKind::kAdam}) {
    for (int workers = 1; workers <= 4; ++workers) {
      for (int shards = 1; shards <= 3; ++shards) {
        SCOPED_TRACE(fmt::format("{} workers, {} shards", workers, shards));
        const OptimizerConfig optimizer{.kind = kind};
        const std::vector<float> expected = oracle(optimizer, workers, kSteps, layout.size());
        PsJob job({.group = {.workers = workers, .servers = shards},
                   .consistency = "sync",
                   .optimizer = optimizer,
                   .wire = GetParam()});
        job.run([&](int rank, PsStrategy& strategy) {
          const ParamArenas arenas = *strategy.allocate(layout);
          const std::vector<float> initial = initial_weights(layout.size());
          if (rank == kChief) std::copy(initial.begin(), initial.end(), arenas.weights.begin());
          const Result<std::vector<Range>> buckets = strategy.join();
          ASSERT_TRUE(buckets.ok()) << buckets.status().message();
          EXPECT_TRUE(std::equal(initial.begin(), initial.end(), arenas.weights.begin()));
          for (std::int64_t i = 0; i < kSteps; ++i) {
            make_gradient(rank, i, arenas.gradients);
            const Result<SyncStats> stats = step(strategy, i, buckets->size(), 0.1);
            ASSERT_TRUE(stats.ok()) << stats.status().message();
            EXPECT_EQ(stats->bytes_out, static_cast<std::int64_t>(layout.size() * sizeof(float)));
            EXPECT_EQ(stats->bytes_in, stats->bytes_out);
            EXPECT_EQ(stats->staleness_max, 0);
            EXPECT_GT(stats->communication, Duration::zero());
          }
          EXPECT_TRUE(std::equal(expected.begin(), expected.end(), arenas.weights.begin()));
          EXPECT_TRUE(strategy.leave().ok());
          EXPECT_TRUE(std::equal(expected.begin(), expected.end(), arenas.weights.begin()));
        });
        for (int shard = 0; shard < shards; ++shard) EXPECT_TRUE(job.served(shard).ok());
        EXPECT_EQ(job.total().shard.updates, kSteps * shards);
        EXPECT_EQ(job.total().shard.copies, 0);
        EXPECT_EQ(job.total().dropped, 0);
      }
    }
  }
}

TEST_P(PsJobOverEveryWire, EveryPushIsInTheFinalWeightsOfAllWorkers) {
  constexpr std::int64_t kSteps = 20;
  const ParamLayout layout = small_layout();
  const auto applies_each_gradient = [](const ConsistencyTraits& traits) {
    return traits.applies_stale_gradients() && traits.update == ConsistencyTraits::Update::kEachPush;
  };
  for (const std::string& consistency : every_consistency(applies_each_gradient)) {
    for (int workers = 1; workers <= 4; ++workers) {
      PsJob job({.group = {.workers = workers, .servers = 1, .shards_per_server = 2},
                 .consistency = consistency,
                 .wire = GetParam()});
      job.run([&](int rank, PsStrategy& strategy) {
        const ParamArenas arenas = *strategy.allocate(layout);
        const Result<std::vector<Range>> buckets = strategy.join();
        ASSERT_TRUE(buckets.ok()) << buckets.status().message();
        for (std::int64_t i = 0; i < kSteps; ++i) {
          fill(arenas.gradients, static_cast<float>(1 + rank));
          const Result<SyncStats> stats = step(strategy, i, buckets->size(), 1.0);
          ASSERT_TRUE(stats.ok()) << stats.status().message();
        }
        ASSERT_TRUE(strategy.leave().ok());
        EXPECT_THAT(arenas.weights, Each(static_cast<float>(-kSteps * workers * (workers + 1) / 2)));
      });
      EXPECT_EQ(job.total().shard.pushes, kSteps * workers * 2);
      EXPECT_EQ(job.total().shard.updates, kSteps * workers * 2);
    }
  }
}

// Gradients of one make updates of one, whoever they come from: what counts is how many there are.
TEST_P(PsJobOverEveryWire, SoftSyncMakesAnUpdateOfEachCGradients) {
  constexpr int kSteps = 10, kWorkers = 4;
  const ParamLayout layout = small_layout();
  for (const int n : {1, 2, 3, 4}) {
    PsJob job({.group = {.workers = kWorkers, .servers = 2},
               .consistency = fmt::format("softsync:{}", n),
               .wire = GetParam()});
    job.run([&](int, PsStrategy& strategy) {
      const ParamArenas arenas = *strategy.allocate(layout);
      const Result<std::vector<Range>> buckets = strategy.join();
      ASSERT_TRUE(buckets.ok()) << buckets.status().message();
      for (std::int64_t i = 0; i < kSteps; ++i) {
        fill(arenas.gradients, 1.0f);
        const Result<SyncStats> stats = step(strategy, i, buckets->size(), 1.0);
        ASSERT_TRUE(stats.ok()) << stats.status().message();
      }
      ASSERT_TRUE(strategy.leave().ok());
      EXPECT_THAT(arenas.weights, Each(static_cast<float>(-kSteps * kWorkers / (kWorkers / n))));
    });
  }
}

TEST_P(PsJobOverEveryWire, BackupWorkersHelpAndTheirLateGradientsAreDroppedAndToldOf) {
  constexpr int kSteps = 20, kWorkers = 3;
  const ParamLayout layout = small_layout();
  PsJob job(
      {.group = {.workers = kWorkers, .servers = 2}, .consistency = "sync+1", .wire = GetParam(), .chunk_bytes = 1024});
  std::vector<double> dropped(kWorkers);
  std::vector<std::vector<float>> weights(kWorkers);
  std::size_t chunks = 0;
  job.run([&](int rank, PsStrategy& strategy) {
    const ParamArenas arenas = *strategy.allocate(layout);
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    if (rank == 0) chunks = buckets->size();
    for (std::int64_t i = 0; i < kSteps; ++i) {
      make_gradient(rank, i, arenas.gradients);
      const Result<SyncStats> stats = step(strategy, i, buckets->size(), 0.1);
      ASSERT_TRUE(stats.ok()) << stats.status().message();
      EXPECT_EQ(stats->staleness_max, 0);
      dropped[static_cast<std::size_t>(rank)] += stats->dropped;
    }
    ASSERT_TRUE(strategy.leave().ok());
    weights[static_cast<std::size_t>(rank)].assign(arenas.weights.begin(), arenas.weights.end());
  });
  for (const std::vector<float>& each : weights) EXPECT_EQ(each, weights[0]);
  const ShardCounters total = job.total().shard;
  EXPECT_EQ(total.pushes, static_cast<std::int64_t>(kSteps * kWorkers * chunks));
  EXPECT_NEAR(dropped[0] + dropped[1] + dropped[2], static_cast<double>(total.late) / static_cast<double>(chunks),
              1e-9);
  // An update takes two gradients, and one only of a worker that is alone.
  EXPECT_GE(2 * total.updates, total.pushes - total.late);
  EXPECT_LE(total.updates, total.pushes - total.late);
}

// Its gradients are held for the other, who leaves without one.
TEST_P(PsJobOverEveryWire, AWorkerGoesOnInSyncWhenTheOneItWaitsForLeaves) {
  PsJob job({.group = {.workers = 2, .servers = 2}, .consistency = "sync", .wire = GetParam()});
  job.run([&](int rank, PsStrategy& strategy) {
    const ParamArenas arenas = *strategy.allocate(small_layout());
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    for (std::int64_t i = 0; rank == 0 && i < 3; ++i) {
      fill(arenas.gradients, 1.0f);
      const Result<SyncStats> stats = step(strategy, i, buckets->size(), 1.0);
      ASSERT_TRUE(stats.ok()) << stats.status().message();
    }
    ASSERT_TRUE(strategy.leave().ok());
    EXPECT_THAT(arenas.weights, Each(-3.0f));
  });
}

// All gradients are even, so that weights which were overwritten while somebody read them would show.
TEST_P(PsJobOverEveryWire, WeightsThatAreKeptForCompensationReachEveryWorkerWhole) {
  constexpr int kWorkers = 4, kSteps = 30;
  const ParamLayout layout = small_layout();
  for (const char* consistency : {"async", "bounded:1", "softsync:2"}) {
    PsJob job({.group = {.workers = kWorkers},
               .consistency = consistency,
               .staleness = {.divide_rate = true, .compensation = {.lambda = 0.01f, .adaptive = true}},
               .wire = GetParam()});
    std::vector<float> last(kWorkers);
    job.run([&](int rank, PsStrategy& strategy) {
      const ParamArenas arenas = *strategy.allocate(layout);
      const Result<std::vector<Range>> buckets = strategy.join();
      ASSERT_TRUE(buckets.ok()) << buckets.status().message();
      for (std::int64_t i = 0; i < kSteps; ++i) {
        fill(arenas.gradients, static_cast<float>(rank + 1) * (i % 2 == 0 ? 1.0f : -0.5f));
        const Result<SyncStats> stats = step(strategy, i, buckets->size(), 0.1);
        ASSERT_TRUE(stats.ok()) << stats.status().message();
        ASSERT_THAT(arenas.weights, Each(arenas.weights[0]));
      }
      ASSERT_TRUE(strategy.leave().ok());
      ASSERT_THAT(arenas.weights, Each(arenas.weights[0]));
      last[static_cast<std::size_t>(rank)] = arenas.weights[0];
    });
    EXPECT_THAT(last, Each(last[0]));
    EXPECT_EQ(job.total().dropped, 0);
    EXPECT_EQ(job.total().shard.pushes, kWorkers * kSteps);
  }
}

// 53 chunks of a cache line each, more than a window or a wire's inbox holds at a time.
TEST_P(PsJobOverEveryWire, ChunksAreSummedAndAppliedAsOneWouldBe) {
  constexpr std::int64_t kSteps = 4;
  constexpr int kWorkers = 3;
  const ParamLayout layout = small_layout();
  const OptimizerConfig optimizer{.kind = OptimizerKind::kAdam};
  const std::vector<float> expected = oracle(optimizer, kWorkers, kSteps, layout.size());
  for (const std::size_t window : {64u, 256u, 1u << 20}) {
    PsJob job({.group = {.workers = kWorkers, .servers = 2},
               .consistency = "sync",
               .optimizer = optimizer,
               .wire = GetParam(),
               .chunk_bytes = 64,
               .window_bytes = window});
    job.run([&](int rank, PsStrategy& strategy) {
      const ParamArenas arenas = *strategy.allocate(layout);
      const std::vector<float> initial = initial_weights(layout.size());
      if (rank == kChief) std::copy(initial.begin(), initial.end(), arenas.weights.begin());
      const Result<std::vector<Range>> buckets = strategy.join();
      ASSERT_TRUE(buckets.ok()) << buckets.status().message();
      EXPECT_EQ(buckets->size(), layout.size() / 16);
      for (std::int64_t i = 0; i < kSteps; ++i) {
        make_gradient(rank, i, arenas.gradients);
        const Result<SyncStats> stats = step(strategy, i, buckets->size(), 0.1);
        ASSERT_TRUE(stats.ok()) << stats.status().message();
        EXPECT_EQ(stats->bytes_out, static_cast<std::int64_t>(layout.size() * sizeof(float)));
        EXPECT_EQ(stats->bytes_in, stats->bytes_out);
      }
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), arenas.weights.begin()));
      EXPECT_TRUE(strategy.leave().ok());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), arenas.weights.begin()));
    });
    EXPECT_EQ(job.total().shard.copies, 0);
    EXPECT_EQ(job.total().dropped, 0);
  }
}

// A worker that runs ahead by d steps computes with weights that lack its own last d gradients; none is lost.
TEST_P(PsJobOverEveryWire, AWorkerThatRunsAheadIsAsStaleAsItsPipelineIsDeepAndLosesNoGradient) {
  constexpr std::int64_t kSteps = 12;
  const ParamLayout layout = small_layout();
  for (const auto order : {PushScheduler::Order::kFifo, PushScheduler::Order::kPriority}) {
    for (const int depth : {1, 3}) {
      PsJob job({.group = {.workers = 1, .servers = 2},
                 .wire = GetParam(),
                 .chunk_bytes = 64,
                 .window_bytes = 512,
                 .pipeline_depth = depth,
                 .push_order = order});
      std::int64_t stalest = 0;
      job.run([&](int, PsStrategy& strategy) {
        const ParamArenas arenas = *strategy.allocate(layout);
        const Result<std::vector<Range>> buckets = strategy.join();
        ASSERT_TRUE(buckets.ok()) << buckets.status().message();
        for (std::int64_t i = 0; i < kSteps; ++i) {
          fill(arenas.gradients, static_cast<float>(i + 1));
          const Result<SyncStats> stats = step(strategy, i, buckets->size(), 1.0);
          ASSERT_TRUE(stats.ok()) << stats.status().message();
          // At most the last `depth` of the pushes of steps 0 .. i are missing.
          const std::int64_t applied = std::max<std::int64_t>(0, i + 1 - depth);
          EXPECT_THAT(arenas.weights, Each(testing::Le(static_cast<float>(-applied * (applied + 1) / 2))));
          stalest = std::max(stalest, stats->staleness_max);
        }
        ASSERT_TRUE(strategy.leave().ok());
        EXPECT_THAT(arenas.weights, Each(static_cast<float>(-kSteps * (kSteps + 1) / 2)));
      });
      EXPECT_LE(stalest, depth);
      EXPECT_EQ(job.total().dropped, 0);
    }
  }
}

// Each layer's weights are asked for as forward would; what they hold then must be this step's.
TEST_P(PsJobOverEveryWire, WeightsThatComeDuringForwardAreThoseOfTheStep) {
  constexpr std::int64_t kSteps = 6;
  const ParamLayout layout = small_layout();
  for (const auto& [consistency, order] :
       {std::pair{"sync", PushOrder::kFifo}, std::pair{"async", PushOrder::kPriority}}) {
    const int workers = order == PushOrder::kFifo ? 3 : 1;
    const std::vector<float> expected = oracle({}, workers, kSteps, layout.size());
    PsJob job({.group = {.workers = workers, .servers = 2},
               .consistency = consistency,
               .wire = GetParam(),
               .chunk_bytes = 128,
               .window_bytes = 512,
               .overlap_forward = true,
               .push_order = order});
    job.run([&](int rank, PsStrategy& strategy) {
      const ParamArenas arenas = *strategy.allocate(layout);
      const std::vector<float> initial = initial_weights(layout.size());
      if (rank == kChief) std::copy(initial.begin(), initial.end(), arenas.weights.begin());
      const Result<std::vector<Range>> buckets = strategy.join();
      ASSERT_TRUE(buckets.ok()) << buckets.status().message();
      for (std::int64_t i = 0; i < kSteps; ++i) {
        const std::vector<float> now = oracle({}, workers, i, layout.size());
        strategy.begin_step({.step = i, .learning_rate = 0.1});
        for (const TensorSpec& tensor : layout.tensors()) {
          ASSERT_TRUE(strategy.weights_needed(tensor.range).ok());
          EXPECT_TRUE(std::ranges::equal(slice(std::span(now), tensor.range), slice(arenas.weights, tensor.range)));
        }
        make_gradient(rank, i, arenas.gradients);
        for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) strategy.gradient_ready(bucket);
        const Result<SyncStats> stats = strategy.finish_step();
        ASSERT_TRUE(stats.ok()) << stats.status().message();
        EXPECT_GE(stats->exposed_wait, stats->forward_wait);
      }
      ASSERT_TRUE(strategy.leave().ok());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), arenas.weights.begin()));
    });
    EXPECT_EQ(job.total().dropped, 0);
  }
}

// The test is the shard. What is answered between two steps belongs to the next one's figures.
// Three pushes of each worker and their responses, and nothing of what is sent when workers join and leave.
TEST(PsJob, ServersCountTheBytesOfStepsAlone) {
  const ParamLayout layout = small_layout();
  PsJob job({.group = {.workers = 2, .servers = 2}, .consistency = "sync"});
  job.run([&](int rank, PsStrategy& strategy) {
    const ParamArenas arenas = *strategy.allocate(layout);
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    for (std::int64_t i = 0; i < 3; ++i) {
      make_gradient(rank, i, arenas.gradients);
      const Result<SyncStats> stats = step(strategy, i, buckets->size(), 0.1);
      ASSERT_TRUE(stats.ok()) << stats.status().message();
      EXPECT_GE(stats->last_shard, 0);
      EXPECT_LT(stats->last_shard, 2);
      EXPECT_LE(stats->last_shard_alone, stats->exposed_wait);
    }
    ASSERT_TRUE(strategy.leave().ok());
  });
  std::int64_t in = 0, out = 0;
  for (int shard = 0; shard < 2; ++shard) {
    const ShardLoad load = job.server(shard).counters().load;
    in += load.bytes_in;
    out += load.bytes_out;
    EXPECT_GT(load.busy, Duration::zero());
    EXPECT_GE(load.serving, load.busy);
  }
  EXPECT_EQ(in, static_cast<std::int64_t>(2 * 3 * layout.size() * sizeof(float)));
  EXPECT_EQ(out, in);
}

TEST(PsJob, EveryAnswerIsCountedOnceThoughItComesDuringForward) {
  const PsGroup group{.workers = 2};
  const auto endpoints = testing_support::connect_group("inproc", group.size());
  Transport& shard = *endpoints[2];
  const ParamLayout layout = small_layout();
  const std::size_t bytes = layout.size() * sizeof(float);
  const Result<std::span<std::byte>> weights = shard.allocate(bytes);
  ASSERT_TRUE(weights.ok());
  PendingSends pending;
  const TimePoint deadline = SteadyClock().now() + std::chrono::seconds(60);
  const auto answer = [&](const wire::Header& header, std::span<const std::byte> payload) {
    ASSERT_TRUE(shard.send(1, header.SerializeAsString(), payload, &pending, deadline).ok());
  };
  const auto weights_of_clock = [](std::int64_t clock, bool late) {
    wire::Header header;
    header.mutable_weights()->set_clock(clock);
    header.mutable_weights()->set_version(clock);
    header.mutable_weights()->set_late(late);
    return header;
  };
  const SteadyClock clock;
  PsStrategy strategy({.group = group, .overlap_forward = true}, *endpoints[1], clock, nullptr);
  ASSERT_TRUE(strategy.allocate(layout).ok());
  wire::Header welcome;
  welcome.mutable_welcome();
  answer(welcome, {});
  answer(weights_of_clock(0, false), *weights);
  const Result<std::vector<Range>> buckets = strategy.join();
  ASSERT_TRUE(buckets.ok()) << buckets.status().message();
  ASSERT_EQ(buckets->size(), 1u);

  const Result<SyncStats> first = step(strategy, 0, 1, 1.0);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->bytes_in, 0);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(shard.receive(deadline).ok());  // the join and the push
  answer(weights_of_clock(1, true), *weights);
  ASSERT_TRUE(strategy.weights_needed({0, layout.size()}).ok());

  strategy.begin_step({.step = 1, .learning_rate = 1.0});
  strategy.gradient_ready(0);
  answer(weights_of_clock(2, false), *weights);
  ASSERT_TRUE(shard.receive(deadline).ok());
  const Result<SyncStats> second = strategy.finish_step();
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(second->bytes_in, static_cast<std::int64_t>(2 * bytes));
  EXPECT_EQ(second->dropped, 0.5);
}

TEST(PsJob, BucketsAreTheShardsRangesInBackwardOrderWithoutEmptyOnes) {
  ParamLayout layout;
  layout.add("w", {40});  // three cache lines for five shards
  PsJob job({.group = {.workers = 2, .servers = 5}});
  job.run([&](int, PsStrategy& strategy) {
    ASSERT_TRUE(strategy.allocate(layout).ok());
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    EXPECT_THAT(*buckets, testing::ElementsAre(Range{32, 48}, Range{16, 32}, Range{0, 16}));
    EXPECT_TRUE(step(strategy, 0, buckets->size(), 1.0).ok());
    EXPECT_TRUE(strategy.leave().ok());
  });
  for (int shard = 0; shard < 5; ++shard) EXPECT_TRUE(job.served(shard).ok());
}

// Four workers push in turns. Whoever pushes has the weights of its own last push, since which the three others have
// pushed; in the first round, the weights of the beginning.
TEST(PsJob, TellsAWorkerHowStaleItsGradientWas) {
  constexpr int kWorkers = 4, kSteps = 5;
  PsJob job({.group = {.workers = kWorkers, .servers = 2}});
  std::atomic<int> turn = 0;
  job.run([&](int rank, PsStrategy& strategy) {
    EXPECT_TRUE(strategy.allocate(small_layout()).ok());
    const Result<std::vector<Range>> buckets = strategy.join();
    EXPECT_TRUE(buckets.ok()) << buckets.status().message();
    for (int i = 0; i < kSteps; ++i) {
      const int own = i * kWorkers + rank;
      for (int now = turn; now != own; now = turn) turn.wait(now);
      const Result<SyncStats> stats = step(strategy, i, buckets->size(), 1.0);
      const int expected = i == 0 ? rank : kWorkers - 1;
      EXPECT_TRUE(stats.ok()) << stats.status().message();
      EXPECT_EQ(stats->staleness_max, expected);
      EXPECT_EQ(stats->staleness_mean, expected);
      turn = own + 1;
      turn.notify_all();
    }
    EXPECT_TRUE(strategy.leave().ok());
  });
}

// It stays connected, and computes for ever for all that the others can see.
TEST(PsJob, AWorkerThatKeepsOthersWaitingIsReportedAndMayBeLeftOut) {
  for (const char* consistency : {"sync", "bounded:0"}) {
    PsJob job({.group = {.workers = 3, .servers = 2}, .consistency = consistency});
    std::atomic<bool> is_missing = false;
    for (int shard = 0; shard < 2; ++shard) {
      job.server(shard).on_missing(std::chrono::milliseconds(300), [&](int worker) {
        EXPECT_EQ(worker, 1);
        if (is_missing.exchange(true)) return;
        job.lose(worker);
        is_missing.notify_all();
      });
    }
    job.run([&](int rank, PsStrategy& strategy) {
      const ParamArenas arenas = *strategy.allocate(small_layout());
      const Result<std::vector<Range>> buckets = strategy.join();
      ASSERT_TRUE(buckets.ok()) << buckets.status().message();
      if (rank == 1) return is_missing.wait(false);
      fill(arenas.gradients, 1.0f);
      for (std::int64_t i = 0; i < 3; ++i) ASSERT_TRUE(step(strategy, i, buckets->size(), 1.0).ok());
      ASSERT_TRUE(strategy.leave().ok());
      EXPECT_THAT(arenas.weights, Each(std::string(consistency) == "sync" ? -3.0f : -6.0f));
    });
    EXPECT_EQ(job.total().shard.workers_lost, 2);  // one on each shard
  }
}

// Waiting for the others to leave lasts as long as they train: that is no want of progress.
TEST(PsJob, AWorkerThatLeavesRestsAndOneThatWaitsForWeightsDoesNot) {
  PsJob job({.group = {.workers = 1}});
  SteadyClock clock;
  job.run([&](int, PsStrategy&) {
    Activity activity;
    PsStrategy strategy({.group = {.workers = 1}}, job.endpoint(0), clock, &activity);
    ASSERT_TRUE(strategy.allocate(small_layout()).ok());
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    EXPECT_FALSE(activity.may_last());
    ASSERT_TRUE(step(strategy, 7, buckets->size(), 1.0).ok());
    EXPECT_STREQ(activity.operation(), "wait for weights");
    EXPECT_EQ(activity.step(), 7);
    EXPECT_FALSE(activity.may_last());
    ASSERT_TRUE(strategy.leave().ok());
    EXPECT_STREQ(activity.operation(), "leave");
    EXPECT_TRUE(activity.may_last());
  });
}

TEST(PsJob, ToldOfAnotherLayoutEveryWorkerFailsToJoin) {
  ParamLayout other;
  other.add("another", {10});
  PsJob job({.group = {.workers = 3, .servers = 2}});
  job.run([&](int rank, PsStrategy& strategy) {
    ASSERT_TRUE(strategy.allocate(rank == 1 ? other : small_layout()).ok());
    const Status status = strategy.join().status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(),
                testing::MatchesRegex(fmt::format("join: worker 1 has layout [0-9a-f]+ of {} floats in [01] chunks, "
                                                  "the chief layout [0-9a-f]+ of {} floats in 1 chunks",
                                                  other.size(), small_layout().size())));
  });
  EXPECT_EQ(job.served(0).code(), Code::kInvalidArgument);
  EXPECT_EQ(job.served(1).code(), Code::kInvalidArgument);
}

TEST(PsJob, ToldOfAnotherShardingEveryWorkerFailsToJoin) {
  const PsGroup group{.workers = 2};
  PsJob job({.group = group});
  SteadyClock clock;
  job.run([&](int rank, PsStrategy&) {
    const std::size_t chunk_bytes = rank == 0 ? 256 : 512;
    PsStrategy strategy({.group = group, .sharding = {.chunk_bytes = chunk_bytes}}, job.endpoint(rank), clock, nullptr);
    ASSERT_TRUE(strategy.allocate(small_layout()).ok());
    EXPECT_THAT(strategy.join().status().message(),
                testing::MatchesRegex("join: worker 1 has layout .* in 7 chunks, the chief layout .* in 14 chunks"));
  });
  EXPECT_EQ(job.served(0).code(), Code::kInvalidArgument);
}

TEST(PsJob, AWorkerNamesTheShardThatIsSilent) {
  PsJob job({.group = {.workers = 1, .servers = 1, .shards_per_server = 2}});
  SteadyClock clock;
  job.run([&](int, PsStrategy&) {
    PsStrategy strategy(
        {.group = {.workers = 1, .servers = 1, .shards_per_server = 2}, .timeout = std::chrono::milliseconds(500)},
        job.endpoint(0), clock, nullptr);
    ASSERT_TRUE(strategy.allocate(small_layout()).ok());
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    ASSERT_TRUE(step(strategy, 11, buckets->size(), 1.0).ok());
    job.endpoint(2).interrupt();
    EXPECT_EQ(job.served(1).code(), Code::kCancelled);
    const Status status = step(strategy, 12, buckets->size(), 1.0).status();
    EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
    EXPECT_EQ(status.message(), "step 12: no answer from shard 1 (server 0) for 0.5 s");
    job.endpoint(1).interrupt();
  });
}

TEST(PsJob, AnInterruptEndsTheWaitForTheOthersToLeave) {
  PsJob job({.group = {.workers = 2}});
  std::promise<void> leaving;
  job.run([&](int rank, PsStrategy& strategy) {
    ASSERT_TRUE(strategy.allocate(small_layout()).ok());
    ASSERT_TRUE(strategy.join().ok());
    if (rank == 0) {
      leaving.set_value();
      EXPECT_EQ(strategy.leave().code(), Code::kCancelled);
    } else {
      leaving.get_future().wait();
      job.endpoint(0).interrupt();
      job.lose(0);
      job.lose(1);
    }
  });
  EXPECT_TRUE(job.served(0).ok());
}

TEST(PsJob, TheOthersGoOnWithoutALostWorker) {
  const ParamLayout layout = small_layout();
  // From 22 gradients of one, softsync:1 makes 7 updates of three each and one of the last: their means are one.
  for (const auto& [consistency, expected] : {std::pair("async", -22.0f), std::pair("bounded:0", -22.0f),
                                              std::pair("sync", -10.0f), std::pair("softsync:1", -8.0f)}) {
    PsJob job({.group = {.workers = 3, .servers = 2}, .consistency = consistency});
    job.run([&](int rank, PsStrategy& strategy) {
      const ParamArenas arenas = *strategy.allocate(layout);
      const Result<std::vector<Range>> buckets = strategy.join();
      ASSERT_TRUE(buckets.ok()) << buckets.status().message();
      const std::int64_t steps = rank == 2 ? 2 : 10;
      for (std::int64_t i = 0; i < steps; ++i) {
        fill(arenas.gradients, 1.0f);
        const Result<SyncStats> stats = step(strategy, i, buckets->size(), 1.0);
        ASSERT_TRUE(stats.ok()) << stats.status().message();
      }
      if (rank == 2) return job.lose(2);
      ASSERT_TRUE(strategy.leave().ok());
      EXPECT_THAT(arenas.weights, Each(expected));
    });
    EXPECT_TRUE(job.served(0).ok());
    EXPECT_TRUE(job.served(1).ok());
  }
}

// Worker 1 is at first an intruder that sends what nobody should.
TEST(PsJob, DropsAndCountsWhatDoesNotCheckOut) {
  const PsGroup group{.workers = 2};
  const ParamLayout layout = small_layout();
  PsJob job({.group = group});
  constexpr int kToShard = 200, kToWorker = 50;
  std::promise<void> sent;
  std::shared_future<void> all_sent = sent.get_future().share();
  job.run([&](int rank, PsStrategy& strategy) {
    if (rank == 1) {
      Transport& endpoint = job.endpoint(1);
      const std::span<std::byte> memory = *endpoint.allocate(4096);
      Random random(3);
      const auto send_garbage = [&](int to) {
        std::string header(random.below(kMaxHeaderBytes + 1), '\0');
        for (char& c : header) c = static_cast<char>(random.next());
        PendingSends pending;
        ASSERT_TRUE(
            endpoint.send(to, header, memory.first(random.below(memory.size())), &pending, testing_support::soon())
                .ok());
      };
      for (int i = 0; i < kToShard; ++i) send_garbage(group.rank_of_shard(0));
      for (int i = 0; i < kToWorker; ++i) send_garbage(0);
      sent.set_value();
    }
    all_sent.wait();
    const ParamArenas arenas = *strategy.allocate(layout);
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    fill(arenas.gradients, 1.0f);
    const Result<SyncStats> stats = step(strategy, 0, buckets->size(), 1.0);
    ASSERT_TRUE(stats.ok()) << stats.status().message();
    ASSERT_TRUE(strategy.leave().ok());
    EXPECT_THAT(arenas.weights, Each(-2.0f));
    EXPECT_EQ(strategy.dropped(), rank == 0 ? kToWorker : 0);
  });
  EXPECT_EQ(job.server(0).counters().dropped, kToShard);
}

// Well-formed messages at the wrong time, to a shard.
TEST(PsJob, DropsWellFormedMessagesThatCannotBeRight) {
  const PsGroup group{.workers = 1};
  PsJob job({.group = group});
  job.run([&](int, PsStrategy& strategy) {
    const ParamArenas arenas = *strategy.allocate(small_layout());
    const auto send = [&](const wire::Header& header, std::span<const float> payload) {
      PendingSends pending;
      ASSERT_TRUE(job.endpoint(0)
                      .send(group.rank_of_shard(0), header.SerializeAsString(), std::as_bytes(payload), &pending,
                            testing_support::soon())
                      .ok());
    };
    wire::Header leave, push, answer;
    leave.mutable_leave();
    push.mutable_push()->set_clock(1);
    answer.mutable_weights();
    send(leave, {});
    send(push, arenas.gradients);
    send(answer, arenas.weights);
    ASSERT_TRUE(strategy.join().ok());
    send(push, arenas.gradients.first(16));
    push.mutable_push()->set_clock(2);
    send(push, arenas.gradients);
    push.mutable_push()->set_clock(1);
    push.mutable_push()->set_version(1);
    send(push, arenas.gradients);
    EXPECT_TRUE(strategy.leave().ok());
  });
  EXPECT_EQ(job.server(0).counters().dropped, 6);
  EXPECT_EQ(job.server(0).counters().shard.pushes, 0);
}

}  // namespace
}  // namespace syncopate::ps
