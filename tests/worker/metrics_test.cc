#include "worker/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/random.h"

namespace syncopate::worker {
namespace {

constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

TEST(Auc, IsTheShareOfPairsInWhichThePositiveHasTheHigherScore) {
  EXPECT_EQ(auc(std::vector<float>{1, 2, 3, 4}, std::vector<int>{0, 0, 1, 1}), 1);
  EXPECT_EQ(auc(std::vector<float>{1, 2, 3, 4}, std::vector<int>{1, 1, 0, 0}), 0);
  EXPECT_EQ(auc(std::vector<float>{1, 2, 3, 4}, std::vector<int>{0, 1, 0, 1}), 0.75);
}

TEST(Auc, CountsAPairOfEqualScoresAsHalf) {
  EXPECT_EQ(auc(std::vector<float>{5, 5, 5}, std::vector<int>{0, 1, 0}), 0.5);
  EXPECT_EQ(auc(std::vector<float>{1, 2, 2, 3}, std::vector<int>{0, 0, 1, 1}), 0.875);
}

TEST(Auc, IsWhatAllPairsSay) {
  Random random(3);
  std::vector<float> scores(300);
  std::vector<int> labels(300);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    scores[i] = static_cast<float>(random.below(40));  // many ties
    labels[i] = static_cast<int>(random.below(3) == 0);
  }
  double won = 0, pairs = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    for (std::size_t j = 0; j < scores.size(); ++j) {
      if (labels[i] != 1 || labels[j] != 0) continue;
      won += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
      pairs += 1;
    }
  }
  EXPECT_DOUBLE_EQ(auc(scores, labels), won / pairs);
}

TEST(Auc, IsNoNumberWhereNothingCanBeToldApart) {
  EXPECT_TRUE(std::isnan(auc(std::vector<float>{1, 2}, std::vector<int>{1, 1})));
  EXPECT_TRUE(std::isnan(auc(std::vector<float>{1, 2}, std::vector<int>{0, 0})));
  EXPECT_TRUE(std::isnan(auc(std::vector<float>{1, kNoNumber}, std::vector<int>{0, 1})));
}

TEST(RankingFigures, AreOfThePlacesOfThePositives) {
  // Places 1, 3 and 4 of four; the first item of each group is the positive.
  const std::vector<float> scores = {9, 1, 2, 3, 2, 3, 4, 1, 0, 1, 2, 3};
  EXPECT_DOUBLE_EQ(ranking_figures(scores, 4, 3).hit_rate, 2.0 / 3);
  EXPECT_DOUBLE_EQ(ranking_figures(scores, 4, 3).ndcg, (1 + 0.5) / 3);
  EXPECT_DOUBLE_EQ(ranking_figures(scores, 4, 1).hit_rate, 1.0 / 3);
  EXPECT_DOUBLE_EQ(ranking_figures(scores, 4, 4).ndcg, (1 + 0.5 + 1 / std::log2(5)) / 3);
}

TEST(RankingFigures, CountTiesAgainstTheModel) {
  EXPECT_EQ(ranking_figures(std::vector<float>(100, 0.5f), 100, 10).hit_rate, 0);
  EXPECT_EQ(ranking_figures(std::vector<float>{2, 2, 1}, 3, 1).hit_rate, 0);
  EXPECT_EQ(ranking_figures(std::vector<float>{2, 2, 1}, 3, 2).hit_rate, 1);
}

TEST(RankingFigures, CountWhatIsNoNumberAgainstTheModel) {
  EXPECT_EQ(ranking_figures(std::vector<float>{kNoNumber, 1, 2}, 3, 2).hit_rate, 0);
  EXPECT_EQ(ranking_figures(std::vector<float>{3, kNoNumber, kNoNumber}, 3, 2).hit_rate, 0);
}

}  // namespace
}  // namespace syncopate::worker
