#include "experiments/lab/report/learning_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Guessing kTen{.classes = 10, .labels = 1000};

RunReport learnt_report(double accuracy, double first, double last) {
  RunReport report;
  report.first_train_loss = first;
  report.final_test_accuracy = accuracy;
  report.final_test_loss = last;
  return report;
}

TEST(LearningWords, AreNoneOfARunThatHasLearnt) {
  EXPECT_THAT(learning_words(learnt_report(0.12, 2.3, 2.2), kTen), IsEmpty());
  EXPECT_THAT(learning_words({}, kTen), IsEmpty());
}

TEST(LearningWords, SayOfAnAccuracyThatGuessingHasToo) {
  EXPECT_THAT(learning_words(learnt_report(0.118, 2.3, 2.2), kTen),
              ElementsAre("nothing shows that it has learnt: a test accuracy of 11.80 % of 1,000 labels cannot be told "
                          "from guessing among 10 classes (10.00 %)"));
  EXPECT_THAT(learning_words(learnt_report(0.118, 2.3, 2.2), Guessing{.classes = 10, .labels = 100000}), IsEmpty());
  EXPECT_THAT(learning_words(learnt_report(0.118, 2.3, 2.2), std::nullopt), IsEmpty());
}

TEST(LearningWords, SayOfAnAccuracyThatTheCommonestClassHasToo) {
  const Guessing two{.classes = 2, .labels = 1000, .most = 930};
  EXPECT_THAT(learning_words(learnt_report(0.93, 0.7, 0.3), two),
              ElementsAre("nothing shows that it has learnt: a test accuracy of 93.00 % of 1,000 labels cannot be told "
                          "from always saying the commonest class (93.00 %)"));
  EXPECT_THAT(learning_words(learnt_report(0.95, 0.7, 0.2), two), IsEmpty()) << "by 2.5 standard errors";
}

TEST(LearningWords, SayOfOtherFiguresThatGuessingHasToo) {
  RunReport report;
  report.final_figures = {.auc = 0.503, .hit_rate = 0.11, .ndcg = 0.05, .r2 = -0.02, .rmse = 7};
  const auto words_of = [&](worker::Judgement judgement) {
    return learning_words(report, Guessing{.classes = 2, .labels = 1000, .judgement = judgement});
  };
  EXPECT_THAT(
      words_of(worker::Judgement::kClicks),
      ElementsAre("nothing shows that it has learnt: an AUC of 0.5030 of 1,000 test samples cannot be told from "
                  "guessing (0.5)"));
  EXPECT_THAT(words_of(worker::Judgement::kRanking),
              ElementsAre("nothing shows that it has learnt: an HR@10 of 0.1100 of 1,000 rankings cannot be told from "
                          "guessing (0.1)"));
  EXPECT_THAT(words_of(worker::Judgement::kRegression),
              ElementsAre("nothing shows that it has learnt: an R2 of -0.0200 of 1,000 test samples is not above that "
                          "of always saying the mean (0)"));
  report.final_figures = {.auc = 0.54, .hit_rate = 0.13, .ndcg = 0.05, .r2 = 0.01, .rmse = 7};
  for (const auto judgement :
       {worker::Judgement::kClicks, worker::Judgement::kRanking, worker::Judgement::kRegression}) {
    EXPECT_THAT(words_of(judgement), IsEmpty());
  }
}

TEST(LearningWords, SayOfALossThatHasGrown) {
  EXPECT_THAT(learning_words(learnt_report(0.5, 2.3, 41.5), kTen),
              ElementsAre("the loss has grown: 41.5 on the test set at the end, 2.3 in the first step"));
  RunReport report = learnt_report(0.5, 2.3, 0);
  report.final_test_loss.reset();
  report.final_train_loss = 5.5;
  EXPECT_THAT(learning_words(report, kTen),
              ElementsAre("the loss has grown: 5.5 over the last steps, 2.3 in the first step"));
  report.final_train_loss = 3.5;
  EXPECT_THAT(learning_words(report, kTen), IsEmpty()) << "one batch may have a smaller loss than others";
  report.final_train_loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(learning_words(report, kTen), IsEmpty());
}

TEST(SamplingError, IsOfTheHeadlineAndTheSizeOfTheTestSet) {
  RunReport report = learnt_report(0.9, 2.3, 0.3);
  EXPECT_FALSE(sampling_error(report).has_value()) << "of how many labels is not known";
  report.test_labels = 900;
  EXPECT_DOUBLE_EQ(sampling_error(report).value(), 0.01);
  report.final_figures = {.r2 = 0.7};
  EXPECT_DOUBLE_EQ(sampling_error(report).value(), 0.02);
  report.final_figures = {.auc = 0.7};
  EXPECT_NEAR(sampling_error(report).value(), 0.0193, 0.0001);
  report.final_figures = {.hit_rate = 0.5, .ndcg = 0.2};
  EXPECT_NEAR(sampling_error(report).value(), 1 / 60.0, 1e-12);
  EXPECT_FALSE(sampling_error({}).has_value()) << "nothing was evaluated";
}

}  // namespace
}  // namespace syncopate::experiments
