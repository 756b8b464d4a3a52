#include "common/optimizer/learning_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate {
namespace {

using testing::HasSubstr;

// The rates of a run of 8 epochs of 4 steps, whose updates are of 4 workers' batches, with base rate 1.
double rate(std::string_view schedule, std::int64_t step) {
  const LearningRateContext context{.base_rate = 1, .minibatch_growth = 4, .steps_per_epoch = 4, .total_steps = 32};
  return learning_rate_at(*LearningRateSchedule::parse(schedule), context, step);
}

TEST(LearningRate, ConstantStays) {
  for (std::int64_t step : {0, 7, 31}) EXPECT_EQ(rate("constant", step), 1);
}

TEST(LearningRate, StepFallsByTheFactorEverySoManyEpochs) {
  EXPECT_EQ(rate("step:2:0.5", 7), 1);
  EXPECT_EQ(rate("step:2:0.5", 8), 0.5);
  EXPECT_EQ(rate("step:2:0.5", 15), 0.5);
  EXPECT_EQ(rate("step:2:0.5", 16), 0.25);
}

TEST(LearningRate, CosineGoesFromTheWholeRateToZero) {
  EXPECT_EQ(rate("cosine", 0), 1);
  EXPECT_DOUBLE_EQ(rate("cosine", 16), 0.5);
  EXPECT_NEAR(rate("cosine", 32), 0, 1e-15);
}

TEST(LearningRate, LinearMultipliesByTheGrowthOfTheMinibatch) { EXPECT_EQ(rate("linear", 5), 4); }

TEST(LearningRate, WarmupRisesFromZero) {
  EXPECT_EQ(rate("warmup:2", 0), 0);
  EXPECT_EQ(rate("warmup:2", 2), 0.25);
  EXPECT_EQ(rate("warmup:2", 8), 1);
  EXPECT_EQ(rate("warmup:2", 9), 1);
}

TEST(LearningRate, WarmupWithLinearRisesFromTheBaseRate) {
  EXPECT_EQ(rate("linear,warmup:2", 0), 1);
  EXPECT_EQ(rate("linear,warmup:2", 4), 2.5);
  EXPECT_EQ(rate("linear,warmup:2", 8), 4);
}

TEST(LearningRate, WarmupMeetsTheShapeWithoutAJump) {
  EXPECT_EQ(rate("cosine,warmup:4", 0), 0);
  EXPECT_DOUBLE_EQ(rate("cosine,warmup:4", 16), rate("cosine", 16));
  EXPECT_DOUBLE_EQ(rate("warmup:4,cosine", 8), 0.5 * rate("cosine", 8));
}

TEST(LearningRate, PartsMayStandInAnyOrder) {
  const auto schedule = LearningRateSchedule::parse("linear,warmup:5,step:30:0.1");
  ASSERT_TRUE(schedule.ok());
  EXPECT_EQ(schedule->shape, LearningRateSchedule::Shape::kStep);
  EXPECT_EQ(schedule->step_epochs, 30);
  EXPECT_EQ(schedule->step_factor, 0.1);
  EXPECT_TRUE(schedule->linear_scaling);
  EXPECT_EQ(schedule->warmup_epochs, 5);
}

TEST(LearningRate, IsWrittenAsItIsRead) {
  for (const std::string text :
       {"constant", "cosine", "step:30:0.1", "linear", "warmup:0.5", "cosine,linear,warmup:5"}) {
    EXPECT_EQ(to_string(*LearningRateSchedule::parse(text)), text);
  }
  EXPECT_EQ(to_string(*LearningRateSchedule::parse("linear,warmup:5,step:30:0.1")), "step:30:0.1,linear,warmup:5");
}

TEST(LearningRate, ParseSaysWhatIsWrongAndWhatWouldBeRight) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "'' is none of constant, cosine, step:EPOCHS:FACTOR, linear, warmup:EPOCHS"},
      {"cosin", "'cosin' is none of constant"},
      {"cosine,", "'' is none of"},
      {"cosine:2", "'cosine' takes no number"},
      {"step", "step:EPOCHS:FACTOR with two numbers above zero"},
      {"step:30", "as in step:30:0.1"},
      {"step:0:0.1", "above zero"},
      {"step:30:-1", "above zero"},
      {"step:30:0.1x", "above zero"},
      {"step:inf:0.1", "above zero"},
      {"cosine,constant", "'constant' is a second shape"},
      {"warmup", "as in warmup:5"},
      {"warmup:nan", "as in warmup:5"},
      {"warmup:1,warmup:2", "'warmup' stands twice"},
      {"linear,linear", "'linear' stands twice"},
      {"linear:2", "'linear' takes no number"},
  };
  for (const auto& [text, message] : cases) {
    const auto schedule = LearningRateSchedule::parse(text);
    ASSERT_FALSE(schedule.ok()) << text;
    EXPECT_EQ(schedule.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(schedule.status().message(), HasSubstr(message));
  }
}

}  // namespace
}  // namespace syncopate
