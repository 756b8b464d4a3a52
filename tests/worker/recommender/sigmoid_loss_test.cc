#include "worker/recommender/sigmoid_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace syncopate::worker {
namespace {

TEST(SigmoidCrossEntropy, IsTheMeanOfTheLogsOfWhatTheLabelsWereGiven) {
  const std::vector<float> logits = {0.5f, -1.5f, 2.0f};
  const std::vector<int> labels = {1, 0, 0};
  std::vector<float> gradients(3);
  const LossAndCorrect result = sigmoid_cross_entropy(logits, labels, gradients);
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_NEAR(result.loss, -(std::log(sigmoid(0.5)) + std::log(1 - sigmoid(-1.5)) + std::log(1 - sigmoid(2))) / 3,
              1e-12);
  EXPECT_EQ(result.correct, 2);
  EXPECT_FLOAT_EQ(gradients[0], static_cast<float>((sigmoid(0.5) - 1) / 3));
  EXPECT_FLOAT_EQ(gradients[1], static_cast<float>(sigmoid(-1.5) / 3));
  EXPECT_FLOAT_EQ(gradients[2], static_cast<float>(sigmoid(2) / 3));
}

TEST(SigmoidCrossEntropy, StaysFiniteForLargeLogits) {
  std::vector<float> gradients(4);
  const LossAndCorrect result =
      sigmoid_cross_entropy(std::vector<float>{1e4f, -1e4f, 1e4f, -1e4f}, std::vector<int>{1, 0, 0, 1}, gradients);
  EXPECT_EQ(result.loss, 5000);
  EXPECT_EQ(gradients, (std::vector<float>{0, 0, 0.25f, -0.25f}));
}

TEST(SigmoidCrossEntropy, CountsNoPreferenceAsLabelZero) {
  std::vector<float> gradients(2);
  EXPECT_EQ(sigmoid_cross_entropy(std::vector<float>{0, 0}, std::vector<int>{0, 1}, gradients).correct, 1);
}

TEST(SigmoidCrossEntropy, IsNoNumberWhereALogitIsNone) {
  std::vector<float> gradients(1);
  const std::vector<float> logits = {std::numeric_limits<float>::quiet_NaN()};
  EXPECT_TRUE(std::isnan(sigmoid_cross_entropy(logits, std::vector<int>{1}, gradients).loss));
}

}  // namespace
}  // namespace syncopate::worker
