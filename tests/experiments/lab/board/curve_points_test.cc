#include "experiments/lab/board/curve_points.h"

#include <gtest/gtest.h>

#include <vector>

namespace syncopate::experiments {
namespace {

using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

constexpr TimePoint kOrigin{100s};

// A step of 100 ms, of which a quarter is waiting.
StepRecord step_of(std::int64_t position, Duration end, double loss = 1, std::int64_t samples = 10) {
  StepRecord step;
  step.position = position;
  step.end = kOrigin + end;
  step.total = 100ms;
  step.sync.exposed_wait = 25ms;
  step.sync.staleness_mean = 2;
  step.samples = samples;
  step.loss = loss;
  step.accuracy = loss / 4;
  return step;
}

TEST(CurvePoints, AreMeansOverTheStepsSinceTheLastWeightedBySamples) {
  CurvePoints curves(2, 100, 0);
  curves.begin(kOrigin);
  EXPECT_FALSE(curves.add(step_of(0, 400ms, 1, 10)));
  const std::optional<CurvePoint> point = curves.add(step_of(0, 500ms, 2, 30));
  ASSERT_TRUE(point) << "a step of each worker";
  EXPECT_EQ(point->step, 1);
  EXPECT_EQ(point->at, kOrigin + 500ms);
  EXPECT_EQ(point->loss, (1 * 10 + 2 * 30) / 40.0);
  EXPECT_EQ(point->accuracy, (0.25 * 10 + 0.5 * 30) / 40);
  EXPECT_DOUBLE_EQ(point->samples_per_second, 40 / 0.5);
  EXPECT_DOUBLE_EQ(point->step_ms, 100);
  EXPECT_DOUBLE_EQ(point->wait_ms, 25);
  EXPECT_EQ(point->staleness, 2);
}

TEST(CurvePoints, AreAThousandInALongRun) {
  CurvePoints curves(1, 50'000, 0);
  curves.begin(kOrigin);
  int points = 0;
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < 50'000; ++i) {
    const std::optional<CurvePoint> point = curves.add(step_of(i, (i + 1) * 1ms));
    if (!point) continue;
    ++points;
    EXPECT_EQ(point->step - last, 50);
    last = point->step;
  }
  EXPECT_EQ(points, 1000);
  EXPECT_FALSE(curves.rest());
}

TEST(CurvePoints, ComeAtLeastEveryTenSeconds) {
  CurvePoints curves(1, 1'000'000, 0);
  curves.begin(kOrigin);
  std::vector<std::int64_t> steps;
  for (std::int64_t i = 0; i < 9; ++i) {
    if (const auto point = curves.add(step_of(i, (i + 1) * 4s))) steps.push_back(point->step);
  }
  EXPECT_EQ(steps, (std::vector<std::int64_t>{3, 6, 9}));
}

TEST(CurvePoints, EndWithWhatIsLeft) {
  CurvePoints curves(1, 5000, 4000);
  curves.begin(kOrigin);
  EXPECT_FALSE(curves.rest());
  EXPECT_FALSE(curves.add(step_of(4000, 100ms))) << "5 steps a point, from the step with which the run begins";
  const std::optional<CurvePoint> rest = curves.rest();
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->step, 4001);
  EXPECT_DOUBLE_EQ(rest->samples_per_second, 100);
}

}  // namespace
}  // namespace syncopate::experiments
