// What a worker that makes steps of its own hands out to be evaluated.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "ps/client/local_steps_strategy.h"
#include "tests/ps/job/ps_job.h"

namespace syncopate::ps {
namespace {

const OptimizerConfig kSgd{.kind = OptimizerKind::kSgd};
constexpr std::int64_t kPeriod = 2;
constexpr std::int64_t kWeightSteps = 6;
constexpr double kRate = 0.1;

struct Seen {
  std::vector<bool> are_there;                                 // by step
  std::map<std::int64_t, std::vector<float>> own, handed_out;  // by step, where they are there
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
    for (std::int64_t number = 0; number < kWeightSteps; ++number) {
      make_gradient(rank, number, arenas.gradients);
      ASSERT_TRUE(step(strategy, number, buckets->size(), kRate).ok());
      const JobWeights weights = strategy.job_weights();
      seen.are_there.push_back(weights.are_there);
      if (!weights.are_there) continue;
      seen.own[number].assign(arenas.weights.begin(), arenas.weights.end());
      seen.handed_out[number].assign(weights.values.begin(), weights.values.end());
    }
    ASSERT_TRUE(strategy.leave().ok());
  });
  return seen;
}

// The center after each step in which a worker alone meets it, by algorithm 1 of Zhang et al. 2015 in plain loops.
std::map<std::int64_t, std::vector<float>> plain_centers(float elastic_rate) {
  std::vector<float> own(small_layout().size()), gradient(own.size());
  make_gradient(1000, 0, own);
  std::vector<float> center = own;
  std::map<std::int64_t, std::vector<float>> centers;
  for (std::int64_t number = 0; number < kWeightSteps; ++number) {
    const std::vector<float> before = own;
    make_gradient(0, number, gradient);
    for (std::size_t i = 0; i < own.size(); ++i) own[i] -= static_cast<float>(kRate) * gradient[i];
    if (number == 0 || number % kPeriod != 0) continue;
    for (std::size_t i = 0; i < own.size(); ++i) {
      const float difference = elastic_rate * (before[i] - center[i]);
      own[i] -= difference;
      center[i] += difference;
    }
    centers[number] = center;
  }
  return centers;
}

TEST(JobWeights, AreTheCenterJustAfterAMeetingWithIt) {
  const Seen seen = train_alone("easgd:2", 0.25f);
  const std::map<std::int64_t, std::vector<float>> centers = plain_centers(0.25f);
  EXPECT_THAT(seen.are_there, testing::ElementsAre(false, false, true, false, true, false));
  for (const auto& [number, center] : centers) {
    EXPECT_THAT(seen.handed_out.at(number), testing::Pointwise(testing::FloatNear(1e-5f), center)) << number;
    EXPECT_NE(seen.handed_out.at(number), seen.own.at(number)) << "the worker's own are elsewhere";
  }
}

TEST(JobWeights, AreTheMeanJustAfterAMeetingOfAll) {
  const Seen seen = train_alone("local-sgd:2", {});
  EXPECT_THAT(seen.are_there, testing::ElementsAre(false, true, false, true, false, true));
  for (const auto& [number, weights] : seen.handed_out) EXPECT_EQ(weights, seen.own.at(number)) << number;
}

}  // namespace
}  // namespace syncopate::ps
