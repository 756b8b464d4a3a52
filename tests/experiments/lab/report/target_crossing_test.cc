#include "experiments/lab/report/target_crossing.h"

#include <gtest/gtest.h>

#include <vector>

namespace syncopate::experiments {
namespace {

EvalRecord eval(double seconds, std::int64_t samples, double accuracy) {
  return {.samples_seen = samples, .training_seconds = seconds, .accuracy = accuracy};
}

TEST(TargetCrossing, LiesOnTheLineBetweenTheEvaluationsAroundIt) {
  const std::vector<EvalRecord> evals{eval(2, 1000, 0.80), eval(6, 3000, 0.90), eval(10, 5000, 0.98)};
  const std::optional<TargetCrossing> crossing = target_crossing(evals, 0.95);
  ASSERT_TRUE(crossing.has_value());
  EXPECT_NEAR(crossing->seconds, 8.5, 1e-9);
  EXPECT_NEAR(crossing->samples, 4250, 1e-6);
  EXPECT_EQ(crossing->resolution_seconds, 4);
  EXPECT_EQ(crossing->resolution_samples, 2000);
}

TEST(TargetCrossing, IsTheFirstOneWhateverComesAfter) {
  const std::vector<EvalRecord> evals{eval(1, 100, 0.5), eval(2, 200, 0.7), eval(3, 300, 0.4), eval(4, 400, 0.9)};
  EXPECT_NEAR(target_crossing(evals, 0.6)->seconds, 1.5, 1e-9);
  EXPECT_NEAR(target_crossing(evals, 0.7)->seconds, 2, 1e-9) << "an evaluation that comes to it just so";
}

TEST(TargetCrossing, KnowsNothingOfBeforeTheFirstEvaluation) {
  const TargetCrossing crossing = *target_crossing(std::vector{eval(3, 600, 0.9), eval(5, 900, 0.95)}, 0.8);
  EXPECT_EQ(crossing.seconds, 3);
  EXPECT_EQ(crossing.samples, 600);
  EXPECT_EQ(crossing.resolution_seconds, 3);
}

TEST(TargetCrossing, GoesByTheTimeOfTheWeightsAndNotOfTheirEvaluation) {
  const std::vector<EvalRecord> evals{eval(6, 3000, 0.90), eval(2, 1000, 0.80)};
  EXPECT_NEAR(target_crossing(evals, 0.85)->seconds, 4, 1e-9);
}

TEST(TargetCrossing, IsNoneWhereNoEvaluationComesToTheTarget) {
  EXPECT_FALSE(target_crossing(std::vector{eval(1, 100, 0.79)}, 0.8).has_value());
  EXPECT_FALSE(target_crossing({}, 0.8).has_value());
}

TEST(TargetCrossing, AgreesWithAStepThroughTheLine) {
  const std::vector<EvalRecord> evals{eval(0.5, 50, 0.11), eval(1.25, 150, 0.53), eval(2.75, 400, 0.87)};
  for (double target = 0.12; target < 0.87; target += 0.01) {
    // Small steps along the broken line until it is at the target.
    double seconds = 0.5, figure = 0.11;
    while (figure < target) {
      seconds += 1e-5;
      figure = seconds < 1.25 ? 0.11 + (0.53 - 0.11) * (seconds - 0.5) / 0.75
                              : 0.53 + (0.87 - 0.53) * (seconds - 1.25) / 1.5;
    }
    EXPECT_NEAR(target_crossing(evals, target)->seconds, seconds, 2e-5) << target;
  }
}

}  // namespace
}  // namespace syncopate::experiments
