#include "experiments/config/interval.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(EvaluationInterval, IsOfStepsSecondsOrEpochs) {
  EXPECT_EQ(*EvaluationInterval::parse("100"), (EvaluationInterval{.steps = 100}));
  EXPECT_EQ(*EvaluationInterval::parse("2.5s"), (EvaluationInterval{.seconds = 2.5}));
  EXPECT_EQ(*EvaluationInterval::parse("0.25epochs"), (EvaluationInterval{.epochs = 0.25}));
  EXPECT_EQ(*EvaluationInterval::parse("1epoch"), (EvaluationInterval{.epochs = 1}));
}

TEST(EvaluationInterval, IsWrittenBackAsItWasRead) {
  for (const char* text : {"1", "250", "0.5s", "30s", "0.5epochs", "1epoch", "3epochs"}) {
    ASSERT_TRUE(EvaluationInterval::parse(text).ok()) << text;
    EXPECT_EQ(EvaluationInterval::parse(text)->to_string(), text);
  }
}

TEST(CheckpointInterval, IsOfTheSameForms) {
  for (const char* text : {"1", "250", "0.5s", "30s", "0.5epochs", "1epoch", "3epochs"}) {
    ASSERT_TRUE(CheckpointInterval::parse(text).ok()) << text;
    EXPECT_EQ(CheckpointInterval::parse(text)->to_string(), text);
  }
}

TEST(CheckpointInterval, CountsEpochsInStepsWhereOneIsDue) {
  const auto steps_of = [](const char* text, std::int64_t steps_per_epoch, std::int64_t period) {
    return CheckpointInterval::parse(text)->in_steps(steps_per_epoch, period);
  };
  EXPECT_EQ(steps_of("1epoch", 62, 1), (CheckpointInterval{.steps = 62}));
  EXPECT_EQ(steps_of("3epochs", 62, 1), (CheckpointInterval{.steps = 186}));
  EXPECT_EQ(steps_of("0.5epochs", 63, 1), (CheckpointInterval{.steps = 32}));
  EXPECT_EQ(steps_of("0.001epochs", 62, 1), (CheckpointInterval{.steps = 1}));
  EXPECT_EQ(steps_of("1epoch", 62, 8), (CheckpointInterval{.steps = 64}));
  EXPECT_EQ(steps_of("200", 62, 1), (CheckpointInterval{.steps = 200}));
  EXPECT_EQ(steps_of("2s", 62, 1), (CheckpointInterval{.seconds = 2}));
}

TEST(EvaluationInterval, SaysWhatItMustBe) {
  for (const char* text : {"", "0", "-5", "1.5", "s", "0s", "0.01s", "epochs", "0epochs", "-1epochs", "nanepochs",
                           "1e9epochs", "1 epoch", "5steps", "2m"}) {
    EXPECT_EQ(EvaluationInterval::parse(text).status().message(),
              "must be STEPS (1 to 1000000000), a time (100ms to 1000000s) or EPOCHSepochs (0.0001epochs to "
              "100000epochs)")
        << text;
  }
}

}  // namespace
}  // namespace syncopate::experiments
