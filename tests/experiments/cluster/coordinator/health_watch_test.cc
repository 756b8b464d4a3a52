#include "experiments/cluster/coordinator/health_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using worker::NotFinite;
using Quantity = NotFinite::Quantity;

NotFinite gradient_at(std::int64_t step) {
  return {.step = step, .quantity = Quantity::kGradient, .tensor = "dense1.weight", .loss = 2.5};
}

TimePoint after(int milliseconds) { return TimePoint() + std::chrono::milliseconds(milliseconds); }

TEST(HealthWatch, SaysNothingOfAHealthyRun) {
  HealthWatch watch(OnNan::kStop, true);
  EXPECT_FALSE(watch.take_due(after(10000), true).has_value());
  EXPECT_FALSE(watch.record().has_value());
}

TEST(HealthWatch, TellsTheEarliestOfThoseThatAreReportedTogetherOnce) {
  HealthWatch watch(OnNan::kStop, true);
  watch.on_report("worker 0", gradient_at(51), after(0));
  watch.on_report("worker 1", gradient_at(50), after(100));
  EXPECT_FALSE(watch.take_due(after(200)).has_value());
  const auto finding = watch.take_due(after(300));
  ASSERT_TRUE(finding.has_value());
  EXPECT_TRUE(finding->ends_run);
  EXPECT_EQ(finding->line,
            "step 50: on worker 1 the gradient of dense1.weight is nan (loss 2.5); --on-nan=stop ends the run");
  watch.on_report("worker 2", gradient_at(49), after(400));
  EXPECT_FALSE(watch.take_due(after(10000), true).has_value());
  EXPECT_EQ(watch.record()->process, "worker 1");
}

TEST(HealthWatch, WaitsForNobodyAtTheEnd) {
  HealthWatch watch(OnNan::kGoOn, true);
  watch.on_report("evaluator", {.step = 40, .quantity = Quantity::kWeights, .tensor = "dense1.bias"}, after(0));
  const auto finding = watch.take_due(after(1), true);
  ASSERT_TRUE(finding.has_value());
  EXPECT_FALSE(finding->ends_run);
  EXPECT_THAT(finding->line, HasSubstr("after 40 steps, or before: the weights of dense1.bias hold nan"));
}

TEST(HealthWatch, CountsStepsOfAllWhereWorkersMoveTogetherAndElseThoseOfEach) {
  for (const bool together : {true, false}) {
    HealthWatch watch(OnNan::kSkip, together);
    watch.on_report("worker 0", gradient_at(7), after(0));
    watch.on_report("worker 1", gradient_at(7), after(0));
    watch.on_report("worker 1", gradient_at(9), after(0));
    EXPECT_FALSE(watch.take_due(after(300))->ends_run);
    EXPECT_EQ(watch.record()->left_out, together ? 2 : 3);
  }
}

TEST(HealthWatch, EndsARunWhoseWeightsNoSkippedStepMends) {
  HealthWatch watch(OnNan::kSkip, true);
  watch.on_report("worker 0", gradient_at(7), after(0));
  EXPECT_FALSE(watch.take_due(after(300))->ends_run);
  watch.on_report("worker 0", {.step = 9, .quantity = Quantity::kWeights, .tensor = "dense1.bias"}, after(400));
  const auto finding = watch.take_due(after(800));
  ASSERT_TRUE(finding.has_value());
  EXPECT_TRUE(finding->ends_run);
  EXPECT_THAT(finding->line, HasSubstr("step 9: on worker 0 the weights of dense1.bias hold nan"));
}

}  // namespace
}  // namespace syncopate::experiments
