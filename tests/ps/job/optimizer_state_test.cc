// What the servers' optimizer remembers: read by one worker while a job goes on, and brought to the servers of another.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/ps/job/ps_job.h"

namespace syncopate::ps {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kBefore = 5, kAfter = 4;

struct Saved {
  std::vector<float> weights;
  TrainingState optimizer;
};

PsJobOptions job_of(OptimizerKind kind, int servers, const std::string& wire = "inproc") {
  return {.group = {.workers = 2, .servers = servers},
          .consistency = "sync",
          .optimizer = {.kind = kind},
          .wire = wire,
          .chunk_bytes = 1024};
}

// Every worker makes steps `first` to `last`, and worker 0 then reads what servers remember; returns what it has.
Saved train(const PsJobOptions& options, const Saved* from, std::int64_t first, std::int64_t last) {
  const ParamLayout layout = small_layout();
  Saved saved;
  PsJob job(options);
  job.run([&](int rank, PsStrategy& strategy) {
    const ParamArenas arenas = *strategy.allocate(layout);
    make_gradient(1000, 0, arenas.weights);
    if (from != nullptr && rank == kChief) {
      std::ranges::copy(from->weights, arenas.weights.begin());
      ASSERT_TRUE(strategy.restore(from->optimizer).ok());
    }
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    EXPECT_EQ(strategy.first_step(), first);
    EXPECT_EQ(strategy.updates(), first);
    for (std::int64_t i = first; i < last; ++i) {
      make_gradient(rank, i, arenas.gradients);
      const Result<SyncStats> stats = step(strategy, i, buckets->size(), 0.1);
      ASSERT_TRUE(stats.ok()) << stats.status().message();
    }
    if (rank == kChief) {
      const Status status = strategy.read_optimizer(saved.optimizer);
      ASSERT_TRUE(status.ok()) << status.message();
      saved.weights.assign(arenas.weights.begin(), arenas.weights.end());
      saved.optimizer.step = *strategy.updates();
    }
    EXPECT_TRUE(strategy.leave().ok());
  });
  EXPECT_EQ(job.total().dropped, 0);
  return saved;
}

class OptimizerStateOfServersOfEachKind : public testing::TestWithParam<OptimizerKind> {};

INSTANTIATE_TEST_SUITE_P(Kind, OptimizerStateOfServersOfEachKind,
                         testing::Values(OptimizerKind::kMomentum, OptimizerKind::kAdam, OptimizerKind::kAdagrad));

TEST_P(OptimizerStateOfServersOfEachKind, GoesToAnotherNumberOfServersBitForBit) {
  const Saved whole = train(job_of(GetParam(), 2), nullptr, 0, kBefore + kAfter);
  const Saved half = train(job_of(GetParam(), 2), nullptr, 0, kBefore);
  EXPECT_EQ(half.optimizer.step, kBefore);
  const Saved again = train(job_of(GetParam(), 3), &half, kBefore, kBefore + kAfter);
  EXPECT_EQ(again.weights, whole.weights);
  const Range all{0, whole.weights.size()};
  for (const char* const memory : state_part::kOptimizer) {
    ASSERT_EQ(again.optimizer.covers(memory, all), whole.optimizer.covers(memory, all));
    if (!whole.optimizer.covers(memory, all)) continue;
    std::vector<float> one(all.size()), other(all.size());
    ASSERT_TRUE(again.optimizer.read(memory, all, one).ok());
    ASSERT_TRUE(whole.optimizer.read(memory, all, other).ok());
    EXPECT_EQ(one, other);
  }
}

TEST(OptimizerStateOfServers, IsReadOverEveryWire) {
  for (const std::string& wire : testing_support::all_wires()) {
    SCOPED_TRACE(wire);
    const Saved saved = train(job_of(OptimizerKind::kAdam, 2, wire), nullptr, 0, kBefore);
    EXPECT_TRUE(saved.optimizer.covers(state_part::kOptimizer[1], {0, small_layout().size()}));
  }
}

TEST(OptimizerStateOfServers, IsReadWithItsWeightsWhileOthersPush) {
  PsJobOptions options = job_of(OptimizerKind::kAdagrad, 1);
  options.consistency = "async";
  const ParamLayout layout = small_layout();
  std::atomic<bool> is_over = false;
  PsJob job(options);
  job.run([&](int rank, PsStrategy& strategy) {
    const ParamArenas arenas = *strategy.allocate(layout);
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    std::ranges::fill(arenas.gradients, 1.0f);
    std::int64_t number = 0;
    if (rank != kChief) {
      while (!is_over) ASSERT_TRUE(step(strategy, number++, buckets->size(), 0.1).ok());
    }
    for (int i = 0; rank == kChief && i < 50; ++i) {
      TrainingState state;
      ASSERT_TRUE(strategy.read_optimizer(state).ok());
      for (const Range& chunk : *buckets) {
        // Adagrad's sum counts the chunk's updates, and its weights are what so many updates lead to.
        const std::span<const float> sum = state.within(state_part::kOptimizer[0], chunk);
        ASSERT_EQ(sum.size(), chunk.size());
        std::vector<float> expected(1), squares(1);
        OptimizerState memory({.kind = OptimizerKind::kAdagrad}, 1);
        const std::vector<float> gradient(1, 1.0f);
        for (std::int64_t update = 1; update <= static_cast<std::int64_t>(sum[0]); ++update) {
          Optimizer(options.optimizer)
              .apply(expected, gradient, memory, 0, {.learning_rate = 0.1f, .gradient_scale = 1.0f, .number = update});
        }
        ASSERT_THAT(std::vector<float>(sum.begin(), sum.end()), testing::Each(sum[0]));
        ASSERT_THAT(slice(arenas.weights, chunk), testing::Each(expected[0])) << sum[0] << " updates";
      }
      // It goes on with these weights: no push of it is refused for their version.
      std::ranges::fill(arenas.gradients, 1.0f);
      ASSERT_TRUE(step(strategy, number++, buckets->size(), 0.1).ok());
    }
    is_over = true;
    EXPECT_TRUE(strategy.leave().ok());
  });
  EXPECT_EQ(job.total().dropped, 0);
}

TEST(OptimizerStateOfServers, LeavesWorkersThatAllHaveTheSameWhatTheyHave) {
  PsJobOptions options = job_of(OptimizerKind::kMomentum, 2);
  options.compression.codec = {.kind = CodecKind::kInt8};
  const ParamLayout layout = small_layout();
  std::array<std::vector<float>, 2> weights;
  PsJob job(options);
  job.run([&](int rank, PsStrategy& strategy) {
    const ParamArenas arenas = *strategy.allocate(layout);
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    for (std::int64_t i = 0; i < kBefore; ++i) {
      make_gradient(rank, i, arenas.gradients);
      ASSERT_TRUE(step(strategy, i, buckets->size(), 0.1).ok());
      TrainingState state;
      if (rank == kChief) ASSERT_TRUE(strategy.read_optimizer(state).ok());
    }
    weights[static_cast<std::size_t>(rank)].assign(arenas.weights.begin(), arenas.weights.end());
    EXPECT_TRUE(strategy.leave().ok());
  });
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_EQ(job.total().dropped, 0);
}

TEST(OptimizerStateOfServers, IsNotReadBeforeTheJobBegins) {
  PsJob job(job_of(OptimizerKind::kAdam, 1));
  job.run([&](int, PsStrategy& strategy) {
    ASSERT_TRUE(strategy.allocate(small_layout()).ok());
    TrainingState state;
    EXPECT_THAT(strategy.read_optimizer(state).message(), HasSubstr("between steps"));
    ASSERT_TRUE(strategy.join().ok());
    EXPECT_TRUE(strategy.leave().ok());
    EXPECT_THAT(strategy.read_optimizer(state).message(), HasSubstr("between steps"));
  });
}

}  // namespace
}  // namespace syncopate::ps
