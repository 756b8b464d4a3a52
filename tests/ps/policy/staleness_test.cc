// What helps against stale gradients: the formulas, and what a shard makes of them.
#include "ps/policy/staleness.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/random.h"
#include "tests/ps/server/shard_harness.h"

namespace syncopate::ps {
namespace {

using testing::Each;
using testing::FloatEq;
using testing::FloatNear;

const OptimizerConfig kSgd{.kind = OptimizerKind::kSgd};

TEST(Staleness, ParsesDelayCompensationAndWritesItBack) {
  for (const char* text : {"0", "0.04", "adaptive:2", "1000"}) {
    const Result<DelayCompensation> parsed = DelayCompensation::parse(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(parsed->to_string(), text);
    EXPECT_EQ(parsed->enabled(), std::string(text) != "0");
  }
  for (const char* text : {"", "-1", "nan", "1001", "0.04x", "adaptive", "adaptive:", "adaptive:0", "constant:1"}) {
    const Result<DelayCompensation> parsed = DelayCompensation::parse(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().message(),
              fmt::format("'{}' is not LAMBDA or adaptive:LAMBDA with LAMBDA from 0 to 1000", text));
  }
}

TEST(Staleness, DividesByStalenessFromTwoOn) {
  EXPECT_EQ(staleness_factor(0), 1.0f);
  EXPECT_EQ(staleness_factor(1), 1.0f);
  EXPECT_EQ(staleness_factor(2), 0.5f);
  EXPECT_EQ(staleness_factor(10), 0.1f);
}

// What updates make of one gradient, by the number of updates after it: staleness delays it, momentum spreads it.
std::vector<double> impulse_response(const std::vector<double>& staleness, double rate, double momentum,
                                     bool nesterov) {
  std::vector<double> response;
  double velocity = 0;
  for (std::size_t t = 0; t < 20000; ++t) {
    const double gradient = t < staleness.size() ? staleness[t] : 0;
    velocity = momentum * velocity + gradient;
    response.push_back(rate * (nesterov ? gradient + momentum * velocity : velocity));
  }
  return response;
}

double gain_of(const std::vector<double>& response) {
  double gain = 0;
  for (const double value : response) gain += value;
  return gain;
}

double delay_of(const std::vector<double>& response) {
  double delay = 0;
  for (std::size_t t = 0; t < response.size(); ++t) delay += static_cast<double>(t) * response[t];
  return delay / gain_of(response);
}

// Shares of staleness 0, 1, ...: none, mostly W - 1 as four workers have it, geometric, and with a long tail.
const std::vector<double> kStaleness[] = {{1},
                                          {0.05, 0.1, 0.15, 0.65, 0.05},
                                          {0.25, 0.1875, 0.140625, 0.10546875, 0.0791015625, 0.2373046875},
                                          {0.5, 0, 0, 0.3, 0, 0, 0, 0, 0, 0.2}};

TEST(Staleness, CorrectedMomentumKeepsGainAndMeanDelayOfAnyStaleness) {
  for (const std::vector<double>& staleness : kStaleness) {
    for (const bool nesterov : {false, true}) {
      for (const double momentum : {0.9, 0.99}) {
        const double mean = delay_of(staleness);
        const CorrectedMomentum corrected = corrected_momentum(static_cast<float>(momentum), nesterov, mean);
        const std::vector<double> asked = impulse_response({1}, 1, momentum, nesterov);
        const std::vector<double> made =
            impulse_response(staleness, corrected.rate_factor, corrected.momentum, nesterov);
        EXPECT_NEAR(gain_of(made) / gain_of(asked), 1, 1e-3);
        EXPECT_NEAR(delay_of(made) / delay_of(asked), 1, 1e-3) << "mean staleness " << mean;
        // Left alone, it would come later; lowered without the rate, it would move the weights less.
        if (mean == 0) continue;
        EXPECT_GT(delay_of(impulse_response(staleness, 1, momentum, nesterov)), 1.02 * delay_of(asked));
        EXPECT_LT(gain_of(impulse_response(staleness, 1, corrected.momentum, nesterov)), 0.98 * gain_of(asked));
      }
    }
  }
}

TEST(Staleness, WhereItAloneDelaysMoreThanMomentumWouldCorrectedMomentumIsZeroAndKeepsTheGain) {
  for (const bool nesterov : {false, true}) {
    const CorrectedMomentum corrected = corrected_momentum(0.5f, nesterov, 3);
    EXPECT_EQ(corrected.momentum, 0);
    EXPECT_FLOAT_EQ(corrected.rate_factor, 2);
  }
}

TEST(Staleness, CorrectedMomentumIsWhatWasAskedForWithoutStaleness) {
  for (const float momentum : {0.0f, 0.5f, 0.9f}) {
    for (const bool nesterov : {false, true}) {
      EXPECT_FLOAT_EQ(corrected_momentum(momentum, nesterov, 0).momentum, momentum);
      EXPECT_FLOAT_EQ(corrected_momentum(momentum, nesterov, 0).rate_factor, 1);
    }
  }
}

TEST(Staleness, MeanBeginsAsAPlainOneAndForgetsWhatIsLongPast) {
  MeanStaleness mean;
  EXPECT_EQ(mean.value(), 0);
  for (const int staleness : {4, 0, 2}) mean.add(staleness);
  EXPECT_NEAR(mean.value(), 2, 1e-12);
  for (int i = 0; i < 2000; ++i) mean.add(7);
  EXPECT_NEAR(mean.value(), 7, 1e-6);
}

TEST(StaleGradients, AreDividedByTheirStaleness) {
  ShardHarness job(2, "async", 8, kSgd, {.divide_rate = true});
  job.join_all();
  for (int i = 0; i < 4; ++i) job.push(0, 1);
  EXPECT_THAT(job.weights(), Each(-4.0f));
  job.push(1, 8);  // four updates late
  EXPECT_THAT(job.weights(), Each(-6.0f));
}

// Each gradient by its own staleness, for good: what the velocity holds of it is not weighed anew by later ones.
TEST(StaleGradients, AreDividedBeforeTheyEnterTheVelocity) {
  for (const bool nesterov : {false, true}) {
    const OptimizerConfig config{.kind = OptimizerKind::kMomentum, .momentum = 0.5f, .nesterov = nesterov};
    ShardHarness job(2, "async", 8, config, {.divide_rate = true});
    job.join_all();
    double weights = 0, velocity = 0;
    const auto account = [&](double gradient) {
      velocity = 0.5 * velocity + gradient;
      weights -= 0.25 * (nesterov ? gradient + 0.5 * velocity : velocity);
    };
    for (int i = 0; i < 4; ++i) {
      job.push(0, 1, 0.25f);
      account(1);
    }
    job.push(1, 8, 0.25f);  // four updates late
    account(2);
    job.push(1, 1, 0.25f);
    account(1);
    EXPECT_THAT(job.weights(), Each(FloatNear(static_cast<float>(weights), 1e-5f)));
  }
}

// Adam's step does not grow with the gradient: its rate is divided.
TEST(StaleGradients, UnderAdamHaveTheirRateDivided) {
  const OptimizerConfig config{.kind = OptimizerKind::kAdam};
  ShardHarness job(2, "async", 8, config, {.divide_rate = true});
  job.join_all();
  for (int i = 0; i < 4; ++i) job.push(0, 1, 0.1f);
  EXPECT_THAT(job.weights(), Each(FloatNear(-0.4f, 1e-4f)));
  job.push(1, 1, 0.1f);  // four updates late
  EXPECT_THAT(job.weights(), Each(FloatNear(-0.425f, 1e-4f)));
}

// With sgd: the sum of gradient / staleness, over c (Zhang et al. 2016).
TEST(StaleGradients, AreWeighedInASoftSyncSumEachByItsOwnStaleness) {
  ShardHarness job(2, "softsync:1", 8, kSgd, {.divide_rate = true});
  job.join_all();
  for (int i = 0; i < 8; ++i) job.push(0, 1);
  EXPECT_THAT(job.weights(), Each(-4.0f));
  job.push(0, 1);
  job.push(1, 8);  // four updates late
  EXPECT_THAT(job.weights(), Each(FloatEq(-4 - (1 + 8.0f / 4) / 2)));
}

TEST(StaleGradients, AreCompensatedByTheWayFromTheWeightsThatTheirWorkerWasGiven) {
  ShardHarness job(3, "async", 8, kSgd, {.compensation = {.lambda = 0.5f}});
  job.join_all();
  job.push(0, 1);
  EXPECT_THAT(job.weights(), Each(-1.0f));  // not stale
  job.push(1, 2);                           // 2 + 0.5 · 2 · 2 · (-1 - 0) = 0
  EXPECT_THAT(job.weights(), Each(-1.0f));
  job.push(1, 1);
  EXPECT_THAT(job.weights(), Each(-2.0f));
  job.push(0, 2);  // 2 + 0.5 · 4 · (-2 - -1) = 0
  EXPECT_THAT(job.weights(), Each(-2.0f));
  job.push(2, 4);  // 4 + 0.5 · 16 · (-2 - 0) = -12
  EXPECT_THAT(job.weights(), Each(10.0f));
}

TEST(StaleGradients, AreCompensatedAdaptivelyByTheirMeanSquare) {
  ShardHarness job(2, "async", 8, kSgd, {.compensation = {.lambda = 2, .adaptive = true}});
  job.join_all();
  job.push(0, 1);
  const float first = 0.05f;
  const float second = 0.95f * first + 0.05f * 9;
  job.push(1, 3);
  EXPECT_THAT(job.weights(), Each(FloatNear(-1 - (3 + 2 / std::sqrt(second + 1e-7f) * 9 * -1), 1e-4f)));
}

TEST(StaleGradients, OfOneWorkerAreNeitherCompensatedNorCopied) {
  ShardHarness job(1, "async", 8, kSgd, {.compensation = {.lambda = 1}});
  job.join_all();
  for (int i = 0; i < 10; ++i) job.push(0, 1);
  EXPECT_THAT(job.weights(), Each(-10.0f));
  EXPECT_EQ(job.shard.counters().copies, 0);
}

// Whatever the schedule and the kind, against an account that copies what each worker was given.
TEST(StaleGradients, AreCompensatedAsAnAccountOfAllWeightsSaysOverRandomSchedules) {
  constexpr float kLambda = 0.3f, kRate = 0.05f;
  constexpr int kWorkers = 4;
  for (const std::string kind : {"async", "bounded:1", "softsync:2"}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Random random(seed);
      ShardHarness job(kWorkers, kind, 1, kSgd, {.compensation = {.lambda = kLambda}});
      job.join_all();
      float weights = 0, sum = 0;
      int summed = 0;
      const int per_update = consistency_of(kind).pushes_an_update(kWorkers, kWorkers);
      for (int i = 0; i < 60; ++i) {
        const auto rank = static_cast<int>(random.below(kWorkers));
        if (job.worker(rank).waiting) continue;
        const auto gradient = static_cast<float>(random.normal());
        sum += gradient + kLambda * gradient * gradient * (weights - job.worker(rank).weights[0]);
        if (++summed == per_update) {
          weights -= kRate * std::exchange(sum, 0.0f) / static_cast<float>(std::exchange(summed, 0));
        }
        job.push(rank, gradient, kRate);
        ASSERT_THAT(job.weights(), Each(FloatNear(weights, 1e-4f))) << kind << " seed " << seed;
      }
      // The current weights, what each worker was given, and what is on its way; four are taken at a time.
      EXPECT_LE(job.memory(), 1u + 16 * 4 * 2);
    }
  }
}

TEST(StaleGradients, AreAppliedWithTheMomentumThatTheirMeanStalenessLeaves) {
  const OptimizerConfig config{.kind = OptimizerKind::kMomentum, .momentum = 0.9f};
  ShardHarness job(2, "async", 1, config, {.correct_momentum = true});
  job.join_all();
  double weights = 0, velocity = 0;
  const std::int64_t staleness[] = {0, 1, 1, 1, 0, 2};
  const int ranks[] = {0, 1, 0, 1, 1, 0};
  double sum = 0;
  for (int i = 0; i < 6; ++i) {
    sum += static_cast<double>(staleness[i]);
    const double left = 9 - sum / (i + 1);  // of the delay of 0.9 / (1 - 0.9)
    const double momentum = left / (1 + left);
    velocity = momentum * velocity + 1;
    weights -= 0.5 * (1 - momentum) / 0.1 * velocity;
    job.push(ranks[i], 1, 0.5f);
    EXPECT_EQ(job.worker(ranks[i]).answers.back().staleness, staleness[i]);
    EXPECT_NEAR(job.weights()[0], weights, 1e-4);
  }
}

}  // namespace
}  // namespace syncopate::ps
