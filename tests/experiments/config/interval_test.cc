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

TEST(EvaluationInterval, SaysWhatItMustBe) {
  for (const char* text : {"", "0", "-5", "1.5", "s", "0s", "0.01s", "epochs", "0epochs", "-1epochs", "nanepochs",
                           "1e9epochs", "1 epoch", "5steps", "2m"}) {
    EXPECT_EQ(EvaluationInterval::parse(text).status().message(),
              "must be STEPS (1 to 1000000000), SECONDSs (0.1s to 1000000s) or EPOCHSepochs (0.0001epochs to "
              "100000epochs)")
        << text;
  }
}

}  // namespace
}  // namespace syncopate::experiments
