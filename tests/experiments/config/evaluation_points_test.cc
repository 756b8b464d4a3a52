#include "experiments/config/evaluation_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

EvaluationPoints points_of(const char* interval, const JobLength& job) {
  return {*EvaluationInterval::parse(interval), false, job};
}

// The steps after which a point more has been passed.
std::vector<std::int64_t> steps_of(const EvaluationPoints& points, const JobLength& job) {
  std::vector<std::int64_t> steps;
  std::int64_t passed = 0;
  for (std::int64_t step = 1; step <= job.total_steps; ++step) {
    const std::int64_t now = points.passed(static_cast<double>(step), {});
    EXPECT_LE(passed, now);
    if (now > passed) steps.push_back(step);
    passed = now;
  }
  return steps;
}

TEST(EvaluationPoints, AreTheEndsOfEpochsWhereNothingIsAskedFor) {
  const JobLength job{.steps_per_epoch = 10, .total_steps = 40};
  const EvaluationPoints points({}, false, job);
  EXPECT_THAT(steps_of(points, job), ElementsAre(10, 20, 30)) << "the final weights follow at 40";
  EXPECT_EQ(points.all(), 3);
  EXPECT_EQ(points.to_text(), "every epoch");
}

TEST(EvaluationPoints, LieEverySoManySteps) {
  const JobLength job{.steps_per_epoch = 10, .total_steps = 40};
  EXPECT_THAT(steps_of(points_of("15", job), job), ElementsAre(15, 30));
  EXPECT_EQ(points_of("15", job).all(), 2);
  EXPECT_THAT(steps_of(points_of("40", job), job), IsEmpty());
  EXPECT_EQ(points_of("40", job).all(), 0);
  EXPECT_EQ(points_of("1000", job).all(), 0);
  EXPECT_EQ(points_of("1", job).all(), 39);
}

TEST(EvaluationPoints, DivideAnEpochAsEvenlyAsStepsDo) {
  const JobLength job{.steps_per_epoch = 10, .total_steps = 20};
  EXPECT_THAT(steps_of(points_of("0.25epochs", job), job), ElementsAre(3, 5, 8, 10, 13, 15, 18));
  EXPECT_THAT(steps_of(points_of("0.3333333epochs", job), job), ElementsAre(4, 7, 10, 14, 17));
  EXPECT_EQ(points_of("0.001epochs", job).all(), 19) << "no more than one a step";
}

TEST(EvaluationPoints, CountASlowWorkersPartOfAStep) {
  const EvaluationPoints points = points_of("10", {.steps_per_epoch = 10, .total_steps = 40});
  EXPECT_EQ(points.passed(9.75, {}), 0);
  EXPECT_EQ(points.passed(10, {}), 1);
  EXPECT_EQ(points.passed(31.5, {}), 3) << "several at once, where one step of a worker spans them";
}

TEST(EvaluationPoints, LieAlongTheTimeWhereSecondsAreAskedFor) {
  const EvaluationPoints points = points_of("2s", {.steps_per_epoch = 10, .total_steps = 40});
  EXPECT_EQ(points.passed(5, std::chrono::milliseconds(1999)), 0);
  EXPECT_EQ(points.passed(5, std::chrono::milliseconds(2000)), 1);
  EXPECT_EQ(points.passed(39, std::chrono::seconds(13)), 6);
  EXPECT_FALSE(points.all().has_value());
  EXPECT_EQ(points.to_text(), "every 2 s");
}

TEST(EvaluationPoints, AreTwentyAtLeastWhereThereIsATarget) {
  for (const std::int64_t epoch : {1, 7, 58, 234, 1000}) {
    for (const std::int64_t total : {25, 100, 234, 702, 2808, 100000}) {
      const JobLength job{.steps_per_epoch = epoch, .total_steps = total};
      const EvaluationPoints points({}, true, job);
      const std::vector<std::int64_t> steps = steps_of(points, job);
      EXPECT_EQ(static_cast<std::int64_t>(steps.size()), *points.all()) << epoch << ", " << total;
      EXPECT_GE(steps.size() + 1, 20u) << "with the final weights: " << epoch << ", " << total;
      for (std::int64_t end = epoch; end < total && epoch > 1; end += epoch) {
        EXPECT_TRUE(std::ranges::binary_search(steps, end)) << end << " of " << total << ": each epoch's end is one";
      }
    }
  }
  EXPECT_EQ(EvaluationPoints({}, true, {.steps_per_epoch = 10, .total_steps = 5}).all(), 4)
      << "a run of five steps has no more";
}

TEST(EvaluationPoints, SayHowFarApartTheyLie) {
  const JobLength job{.steps_per_epoch = 234, .total_steps = 702};
  EXPECT_EQ(points_of("0.5epochs", job).to_text(), "every 0.5 epochs (117 steps)");
  EXPECT_EQ(points_of("50", job).to_text(), "every 50 steps");
  EXPECT_EQ(points_of("1", job).to_text(), "every step");
}

}  // namespace
}  // namespace syncopate::experiments
