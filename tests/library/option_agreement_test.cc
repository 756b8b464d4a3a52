#include "library/option_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace syncopate::library {
namespace {

TEST(OptionAgreement, IsReachedByTheSameOptions) {
  const OptionTexts options{{"mode", "allreduce"}, {"compress", "int8"}};
  EXPECT_TRUE(check_alike({options}).ok());
  EXPECT_TRUE(check_alike({options, options, options}).ok());
}

TEST(OptionAgreement, NamesEachOptionThatDiffersWithTheValueOfEachRank) {
  const OptionTexts zero{{"compress", "none"}, {"momentum", "0.9"}, {"servers", "1"}};
  const OptionTexts one{{"compress", "int8"}, {"momentum", "0.9"}};
  const Status status = check_alike({zero, one, zero});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(
      status.message(),
      "compress: none on ranks 0, 2, int8 on rank 1; servers: 1 on ranks 0, 2, not given on rank 1; all ranks must "
      "have the same");
}

TEST(OptionAgreement, LeavesOutWhatFollowsFromAnotherModeOrRule) {
  EXPECT_EQ(
      check_alike({{{"mode", "allreduce"}, {"optimizer", "sgd"}}, {{"mode", "ps"}, {"optimizer", "adam"}}}).message(),
      "mode: allreduce on rank 0, ps on rank 1; all ranks must have the same");
}

TEST(TrainingOptions, RefusesNumbersThatMeanNothingToTheRule) {
  const auto refusal = [](const OptionTexts& texts) { return TrainingOptions::parse(texts, 2).status().message(); };
  EXPECT_EQ(refusal({{"optimizer", "adam"}, {"momentum", "0.9"}}),
            "momentum=0.9 means nothing to adam, which has beta1, beta2, epsilon, weight_decay: leave it out");
  EXPECT_EQ(refusal({{"beta1", "0.9"}}), "beta1=0.9 means nothing to sgd, which has weight_decay: leave it out");
  EXPECT_EQ(refusal({{"optimizer", "momentum"}, {"momentum", "nan"}}), "momentum=nan: must be finite and at least 0");
  EXPECT_EQ(refusal({{"optimizer", "adam"}, {"beta2", "1"}}), "beta2=1: must be at least 0 and below 1");
  EXPECT_EQ(refusal({{"consistency", "async"}}),
            "consistency='async' is for parameter servers: allreduce is always synchronous");
  EXPECT_EQ(refusal({{"consistency", "sync"}}), "");
}

TEST(TrainingOptions, AreAllThatTheyComeTo) {
  const auto texts = [](const OptionTexts& given) { return TrainingOptions::parse(given, 2)->texts(); };
  EXPECT_EQ(texts({{"optimizer", "adam"}}), texts({{"optimizer", "adam"}, {"beta1", "0.90"}, {"compress", "none"}}));
  const OptionTexts all = texts({{"optimizer", "nesterov"}, {"servers", "2"}, {"consistency", "bounded:4"}});
  EXPECT_EQ(all, (OptionTexts{{"optimizer", "nesterov"},
                              {"momentum", "0.9"},
                              {"dampening", "0"},
                              {"maximize", "0"},
                              {"weight_decay", "0"},
                              {"compress", "none"},
                              {"bucket_bytes", "1048576"},
                              {"servers", "2"},
                              {"consistency", "bounded:4"}}));
}

TEST(LearningRate, IsFiniteAndNotNegative) {
  EXPECT_TRUE(check_learning_rate(0).ok());
  EXPECT_TRUE(check_learning_rate(1e30).ok());
  EXPECT_EQ(check_learning_rate(std::nan("")).message(), "a learning rate of nan: must be finite and at least 0");
  EXPECT_EQ(check_learning_rate(-1).message(), "a learning rate of -1: must be finite and at least 0");
  EXPECT_FALSE(check_learning_rate(1e300).ok()) << "which is no float";
}

}  // namespace
}  // namespace syncopate::library
