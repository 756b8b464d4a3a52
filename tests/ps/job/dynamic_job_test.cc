// Whole jobs under dynamic:MIN:MAX, whose bound follows the real times of pushes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "tests/ps/job/ps_job.h"

namespace syncopate::ps {
namespace {

// Every worker has its first push to a chunk counted before it sends it, so that what is seen is never less than what
// the shard has.
TEST(DynamicJob, NoWorkerLeadsByMoreThanTheMaximumAndEveryPushIsApplied) {
  constexpr std::int64_t kDynamicSteps = 60, kMost = 5;
  constexpr int kDynamicWorkers = 3;
  for (const std::string transport : {"inproc", "shm"}) {
    PsJob job({.group = {.workers = kDynamicWorkers, .servers = 2}, .consistency = "dynamic:1:5", .wire = transport});
    std::array<std::atomic<std::int64_t>, kDynamicWorkers> begun{};
    job.run([&](int rank, PsStrategy& strategy) {
      const ParamArenas arenas = *strategy.allocate(small_layout());
      const Result<std::vector<Range>> buckets = strategy.join();
      ASSERT_TRUE(buckets.ok()) << buckets.status().message();
      for (std::int64_t i = 0; i < kDynamicSteps; ++i) {
        for (const std::atomic<std::int64_t>& other : begun) EXPECT_GE(other.load(), i - kMost);
        begun[static_cast<std::size_t>(rank)] = i + 1;
        std::ranges::fill(arenas.gradients, 1.0f);
        const Result<SyncStats> stats = step(strategy, i, buckets->size(), 1.0);
        ASSERT_TRUE(stats.ok()) << stats.status().message();
      }
      ASSERT_TRUE(strategy.leave().ok());
      EXPECT_THAT(arenas.weights, testing::Each(static_cast<float>(-kDynamicSteps * kDynamicWorkers)));
    });
  }
}

}  // namespace
}  // namespace syncopate::ps
