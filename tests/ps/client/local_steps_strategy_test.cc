// Workers that make steps of their own, over the very shards and wires that others push gradients to.
#include "ps/client/local_steps_strategy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "tests/ps/job/ps_job.h"

namespace syncopate::ps {
namespace {

using testing::FloatNear;
using testing::Pointwise;

constexpr double kRate = 0.1;
const OptimizerConfig kSgd{.kind = OptimizerKind::kSgd};

std::vector<float> initial_weights(std::size_t size) {
  std::vector<float> weights(size);
  make_gradient(1000, 0, weights);
  return weights;
}

// What one worker is, without any network: weights and the optimizer's memory.
struct Replica {
  Replica(const OptimizerConfig& config, std::size_t size)
      : optimizer(config), state(config, size), weights(initial_weights(size)) {}

  void step(int rank, std::int64_t number) {
    std::vector<float> gradient(weights.size());
    make_gradient(rank, number, gradient);
    optimizer.apply(weights, gradient, state, 0, {.learning_rate = static_cast<float>(kRate), .number = number + 1});
  }

  Optimizer optimizer;
  OptimizerState state;
  std::vector<float> weights;
};

std::vector<Replica> replicas_of(int workers, const OptimizerConfig& config) {
  std::vector<Replica> replicas;
  for (int rank = 0; rank < workers; ++rank) replicas.emplace_back(config, small_layout().size());
  return replicas;
}

class LocalStepsJob {
 public:
  LocalStepsJob(const PsJobOptions& options, const LocalStepsOptions& local)
      : options_(options), local_(local), job_(options) {}

  // body(rank, strategy, arenas, step): each worker has joined with the same initial weights, and leaves after it. The
  // final weights, by worker.
  using Step = std::function<SyncStats(std::int64_t number)>;
  using Body = std::function<void(int rank, std::span<const float> weights, const Step& step)>;
  std::vector<std::vector<float>> run(const Body& body) {
    std::vector<std::vector<float>> final_weights(static_cast<std::size_t>(options_.group.workers));
    job_.run([&](int rank, PsStrategy&) {
      LocalStepsStrategy strategy(
          local_,
          std::make_unique<PsStrategy>(
              PsStrategyOptions{.group = options_.group, .sharding = {.chunk_bytes = options_.chunk_bytes}},
              job_.endpoint(rank), clock_, nullptr),
          clock_);
      const ParamArenas arenas = *strategy.allocate(small_layout());
      const std::vector<float> initial = initial_weights(arenas.weights.size());
      if (rank == kChief) std::copy(initial.begin(), initial.end(), arenas.weights.begin());
      const Result<std::vector<Range>> buckets = strategy.join();
      ASSERT_TRUE(buckets.ok()) << buckets.status().message();
      EXPECT_TRUE(std::equal(initial.begin(), initial.end(), arenas.weights.begin()));
      body(rank, arenas.weights, [&](std::int64_t number) {
        make_gradient(rank, number, arenas.gradients);
        const Result<SyncStats> stats = step(strategy, number, buckets->size(), kRate);
        EXPECT_TRUE(stats.ok()) << stats.status().message();
        return stats.ok() ? *stats : SyncStats();
      });
      ASSERT_TRUE(strategy.leave().ok());
      final_weights[static_cast<std::size_t>(rank)].assign(arenas.weights.begin(), arenas.weights.end());
    });
    return final_weights;
  }

  PsJob& job() { return job_; }

 private:
  PsJobOptions options_;
  LocalStepsOptions local_;
  SteadyClock clock_;
  PsJob job_;
};

class LocalStepsOverEveryWire : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Wire, LocalStepsOverEveryWire, testing::ValuesIn(testing_support::all_wires()),
                         [](const auto& wire) { return wire.param; });

// Seven steps, of which the last, for periods of 2 and 3, is agreed on when the workers leave.
TEST_P(LocalStepsOverEveryWire, LocalSgdIsTheMeanOfWhatWorkersComeToByThemselves) {
  constexpr std::int64_t kSteps = 7;
  constexpr int kWorkers = 3;
  for (const OptimizerConfig& config : {kSgd, OptimizerConfig{.kind = OptimizerKind::kAdam}}) {
    for (const std::int64_t period : {1, 2, 3, 7}) {
      std::vector<Replica> replicas = replicas_of(kWorkers, config);
      for (std::int64_t i = 0; i < kSteps; ++i) {
        for (int rank = 0; rank < kWorkers; ++rank) replicas[static_cast<std::size_t>(rank)].step(rank, i);
        if ((i + 1) % period != 0 && i + 1 != kSteps) continue;
        std::vector<float> mean(small_layout().size());
        for (const Replica& replica : replicas) {
          for (std::size_t at = 0; at < mean.size(); ++at) mean[at] += replica.weights[at] / kWorkers;
        }
        for (Replica& replica : replicas) replica.weights = mean;
      }
      LocalStepsJob job({.group = {.workers = kWorkers, .servers = 2},
                         .consistency = fmt::format("local-sgd:{}", period),
                         .wire = GetParam(),
                         .chunk_bytes = 1024},
                        {.optimizer = config, .period = period});
      const std::vector<std::vector<float>> weights = job.run([&](int, std::span<const float>, const auto& step) {
        for (std::int64_t i = 0; i < kSteps; ++i) {
          const SyncStats stats = step(i);
          const bool met = (i + 1) % period == 0;
          EXPECT_EQ(stats.bytes_out, met ? static_cast<std::int64_t>(small_layout().size() * sizeof(float)) : 0);
          EXPECT_EQ(stats.bytes_in, stats.bytes_out);
          EXPECT_EQ(stats.exposed_wait > Duration::zero(), met);
          EXPECT_GT(stats.optimizer, Duration::zero());
          EXPECT_EQ(stats.staleness_max, 0);
        }
      });
      EXPECT_THAT(weights[0], Pointwise(FloatNear(1e-5f), replicas[0].weights));
      for (const std::vector<float>& each : weights) EXPECT_EQ(each, weights[0]);
      EXPECT_EQ(job.job().total().dropped, 0);
    }
  }
}

TEST(LocalSteps, LocalSgdEveryStepFollowsSyncUpToRounding) {
  constexpr std::int64_t kSteps = 10;
  const PsGroup group{.workers = 3, .servers = 2};
  std::vector<float> sync;
  PsJob synchronous({.group = group, .consistency = "sync"});
  synchronous.run([&](int rank, PsStrategy& strategy) {
    const ParamArenas arenas = *strategy.allocate(small_layout());
    const std::vector<float> initial = initial_weights(arenas.weights.size());
    std::copy(initial.begin(), initial.end(), arenas.weights.begin());
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    for (std::int64_t i = 0; i < kSteps; ++i) {
      make_gradient(rank, i, arenas.gradients);
      ASSERT_TRUE(step(strategy, i, buckets->size(), kRate).ok());
    }
    ASSERT_TRUE(strategy.leave().ok());
    if (rank == 0) sync.assign(arenas.weights.begin(), arenas.weights.end());
  });
  LocalStepsJob job({.group = group, .consistency = "local-sgd:1"}, {.optimizer = kSgd, .period = 1});
  const std::vector<std::vector<float>> local = job.run([&](int, std::span<const float>, const auto& step) {
    for (std::int64_t i = 0; i < kSteps; ++i) step(i);
  });
  EXPECT_THAT(local[0], Pointwise(FloatNear(2e-6f), sync));
}

// Worker 1 begins only when worker 0 has made all of its steps but the one at which they meet.
TEST(LocalSteps, BetweenMeetingsNobodyIsWaitedFor) {
  LocalStepsJob job({.group = {.workers = 2}, .consistency = "local-sgd:5"}, {.optimizer = kSgd, .period = 5});
  std::promise<void> alone;
  job.run([&](int rank, std::span<const float>, const auto& step) {
    if (rank == 1) alone.get_future().wait();
    for (std::int64_t i = 0; i < 5; ++i) {
      if (rank == 0 && i == 4) alone.set_value();
      step(i);
    }
  });
}

// Algorithm 1 of Zhang, Choromanska and LeCun 2015 in plain loops, but for the meeting of the very first step, in which
// no worker differs from the center. Two workers in turns, so that the account knows in which order they meet it.
TEST_P(LocalStepsOverEveryWire, EasgdMovesAWorkerAndTheCenterByTheirDistanceBeforeTheGradientStep) {
  constexpr std::int64_t kSteps = 8, kPeriod = 3;  // nobody meets in the last
  constexpr int kWorkers = 2;
  constexpr float kAlpha = 0.45f;
  const std::size_t size = small_layout().size();
  std::vector<float> center = initial_weights(size);
  std::vector<Replica> replicas = replicas_of(kWorkers, kSgd);
  LocalStepsJob job(
      {.group = {.workers = kWorkers, .servers = 2}, .consistency = "easgd:3", .wire = GetParam(), .chunk_bytes = 1024},
      {.optimizer = kSgd, .period = kPeriod, .elastic_rate = kAlpha});
  std::atomic<int> turn = 0;
  std::vector<float> before_leaving;
  const std::vector<std::vector<float>> weights = job.run([&](int rank, std::span<const float> own, const auto& step) {
    Replica& replica = replicas[static_cast<std::size_t>(rank)];
    for (int i = 0; i < kSteps; ++i) {
      const int mine = i * kWorkers + rank;
      for (int now = turn; now != mine; now = turn) turn.wait(now);
      const SyncStats stats = step(i);
      const std::vector<float> x = replica.weights;
      std::vector<float> gradient(size);
      make_gradient(rank, i, gradient);
      const bool meets = i > 0 && i % kPeriod == 0;
      for (std::size_t at = 0; at < size; ++at) {
        const float distance = x[at] - center[at];
        if (meets) replica.weights[at] -= kAlpha * distance;
        if (meets) center[at] += kAlpha * distance;
        replica.weights[at] -= static_cast<float>(kRate) * gradient[at];
      }
      EXPECT_EQ(stats.bytes_in, meets ? static_cast<std::int64_t>(size * sizeof(float)) : 0);
      EXPECT_EQ(stats.staleness_max, !meets ? 0 : i == kPeriod ? rank : 1);
      EXPECT_THAT(own, Pointwise(FloatNear(1e-5f), replica.weights));
      turn = mine + 1;
      turn.notify_all();
    }
    if (rank == 1) before_leaving = center;
  });
  EXPECT_EQ(weights[0], weights[1]);  // the center's
  // Whoever left first: the center has moved by alpha towards one, then towards the other.
  const auto after = [&](int first, int second) {
    std::vector<float> moved = before_leaving;
    for (const int rank : {first, second}) {
      for (std::size_t i = 0; i < size; ++i) {
        moved[i] += kAlpha * (replicas[static_cast<std::size_t>(rank)].weights[i] - moved[i]);
      }
    }
    return moved;
  };
  // Shards, and chunks, may have had them in either order.
  const std::vector<float> one = after(0, 1), other = after(1, 0);
  for (std::size_t i = 0; i < size; ++i) {
    EXPECT_TRUE(std::abs(weights[0][i] - one[i]) < 1e-5f || std::abs(weights[0][i] - other[i]) < 1e-5f) << i;
  }
}

TEST(LocalSteps, TheOthersOfEasgdGoOnWithoutALostWorker) {
  const PsGroup group{.workers = 3, .servers = 2};
  PsJob job({.group = group, .consistency = "easgd:2"});
  SteadyClock clock;
  job.run([&](int rank, PsStrategy&) {
    LocalStepsStrategy strategy(
        {.optimizer = kSgd, .period = 2, .elastic_rate = 0.3f},
        std::make_unique<PsStrategy>(PsStrategyOptions{.group = group}, job.endpoint(rank), clock, nullptr), clock);
    const ParamArenas arenas = *strategy.allocate(small_layout());
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    for (std::int64_t i = 0; i < (rank == 2 ? 3 : 9); ++i) {
      make_gradient(rank, i, arenas.gradients);
      ASSERT_TRUE(step(strategy, i, buckets->size(), kRate).ok());
    }
    if (rank == 2) return job.lose(2);
    EXPECT_TRUE(strategy.leave().ok());
  });
  EXPECT_TRUE(job.served(0).ok());
  EXPECT_TRUE(job.served(1).ok());
}

}  // namespace
}  // namespace syncopate::ps
