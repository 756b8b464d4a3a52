// What a worker that makes steps of its own hands out to be evaluated.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ps/local_steps_strategy.h"
#include "tests/ps/ps_job.h"

namespace syncopate::ps {
namespace {

constexpr OptimizerConfig kSgd{.kind = OptimizerKind::kSgd};
constexpr std::int64_t kPeriod = 2;
constexpr std::int64_t kSteps = 4;  // the last of which is a meeting: after it, all leave with what was agreed on there

struct Seen {
  std::vector<bool> are_there;     // by step
  std::vector<float> own, agreed;  // after the last step
  std::vector<float> final;        // after leaving
};

Seen train_alone(const std::string& consistency, std::optional<float> elastic_rate) {
  const PsGroup group{.workers = 1, .servers = 1};
  const SteadyClock clock;
  Seen seen;
  PsJob job({.group = group, .consistency = consistency});
  job.run([&](int rank, PsStrategy&) {
    LocalStepsStrategy strategy(
        {.optimizer = kSgd, .period = kPeriod, .elastic_rate = elastic_rate},
        std::make_unique<PsStrategy>(PsStrategyOptions{.group = group}, job.endpoint(rank), clock, nullptr), clock);
    const ParamArenas arenas = *strategy.allocate(small_layout());
    make_gradient(1000, 0, arenas.weights);
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    for (std::int64_t number = 0; number < kSteps; ++number) {
      make_gradient(rank, number, arenas.gradients);
      ASSERT_TRUE(step(strategy, number, buckets->size(), 0.1).ok());
      seen.are_there.push_back(strategy.job_weights().are_there);
    }
    const std::span<const float> agreed = strategy.job_weights().values;
    seen.agreed.assign(agreed.begin(), agreed.end());
    seen.own.assign(arenas.weights.begin(), arenas.weights.end());
    ASSERT_TRUE(strategy.leave().ok());
    seen.final.assign(arenas.weights.begin(), arenas.weights.end());
  });
  return seen;
}

TEST(JobWeights, AreTheCenterJustAfterAMeetingWithIt) {
  const Seen seen = train_alone("easgd:2", 0.25f);
  EXPECT_THAT(seen.are_there, testing::ElementsAre(false, true, false, true));
  EXPECT_EQ(seen.agreed, seen.final);
  EXPECT_NE(seen.agreed, seen.own) << "which is elsewhere";
}

TEST(JobWeights, AreTheMeanJustAfterAMeetingOfAll) {
  const Seen seen = train_alone("local-sgd:2", {});
  EXPECT_THAT(seen.are_there, testing::ElementsAre(false, true, false, true));
  EXPECT_EQ(seen.agreed, seen.final);
  EXPECT_EQ(seen.agreed, seen.own);
}

}  // namespace
}  // namespace syncopate::ps
