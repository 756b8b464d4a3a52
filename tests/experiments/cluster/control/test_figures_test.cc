#include "experiments/cluster/control/test_figures.h"

#include <gtest/gtest.h>

#include <array>

#include "experiments/lab/report/run_report.h"

namespace syncopate::experiments {
namespace {

constexpr TestFigures kRanked{.auc = {}, .hit_rate = 0.65234, .ndcg = 0.39};
constexpr TestFigures kClicked{.auc = 0.79123, .hit_rate = {}, .ndcg = {}};

TEST(TestFigures, AreReadAsWhatTheDataIsJudgedBy) {
  EXPECT_EQ(to_text(0.9, {}), "accuracy 0.9000");
  EXPECT_EQ(to_text(0.9, kRanked), "HR@10 0.6523, NDCG@10 0.3900");
  EXPECT_EQ(to_text(0.9, kClicked), "AUC 0.7912");
  EXPECT_EQ(headline_of(0.9, {}), 0.9);
  EXPECT_EQ(headline_of(0.9, kRanked), 0.65234);
  EXPECT_EQ(headline_of(0.9, kClicked), 0.79123);
}

TEST(TestFigures, LeaveTheTargetToWhatIsHeldOut) {
  EXPECT_EQ(target_figure_of(0.9, {}, std::nullopt), 0.9);
  EXPECT_EQ(target_figure_of(0.9, kClicked, std::nullopt), 0.79123);
  EXPECT_EQ(target_figure_of(0.9, {}, ValidationFigures{.accuracy = 0.7, .loss = 1}), 0.7);
  const std::array<EvalRecord, 2> evals = {
      EvalRecord{.training_seconds = 1, .accuracy = 0.9, .validation = {{.accuracy = 0.7, .loss = 1}}},
      EvalRecord{.training_seconds = 3, .accuracy = 0.9, .validation = {{.accuracy = 0.8, .loss = 0.5}}}};
  const RunReport report = make_report({}, evals, {.warmup_steps = 0, .target_accuracy = 0.75});
  EXPECT_NEAR(*report.seconds_to_target, 2, 1e-9);
  EXPECT_EQ(report.final_validation, evals.back().validation);
  EXPECT_EQ(report.final_test_accuracy, 0.9);
}

TEST(TestFigures, DecideWhenTheTargetIsReached) {
  const std::array<EvalRecord, 2> evals = {EvalRecord{.training_seconds = 1, .accuracy = 0.9, .figures = {.auc = 0.6}},
                                           EvalRecord{.training_seconds = 2, .accuracy = 0.9, .figures = kClicked}};
  const RunReport report = make_report({}, evals, {.warmup_steps = 0, .target_accuracy = 0.75});
  EXPECT_NEAR(*report.seconds_to_target, 1 + (0.75 - 0.6) / (0.79123 - 0.6), 1e-9);
  EXPECT_EQ(report.final_figures, kClicked);
}

}  // namespace
}  // namespace syncopate::experiments
