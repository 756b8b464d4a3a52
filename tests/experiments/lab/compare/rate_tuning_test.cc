#include "experiments/lab/compare/rate_tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace syncopate::experiments {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

RateTrial trial(double rate, std::vector<double> quality, std::vector<double> loss) {
  return {.label = "ps:async", .rate = rate, .quality = std::move(quality), .loss = std::move(loss)};
}

// Quality as it goes with the rate: best at 0.1, nothing learnt far below, diverged from 1 on.
std::vector<RateTrial> planted_curve(const std::vector<double>& rates) {
  std::vector<RateTrial> trials;
  for (const double rate : rates) {
    const double distance = std::log10(rate / 0.1);
    const double quality = rate < 1 ? 0.98 - 0.1 * distance * distance : 0.098;
    trials.push_back(trial(rate, {quality, quality - 0.01}, {rate < 1 ? 1 - quality : kNone, 1 - quality}));
  }
  return trials;
}

TEST(RateChoice, FindsThePeakOfAPlantedCurve) {
  const auto choice = choose_rate(planted_curve({0.01, 0.03, 0.1, 0.3, 1}));
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->best, 2u);
  EXPECT_FALSE(choice->is_lowest || choice->is_highest);
}

TEST(RateChoice, SaysWhereTheBestLiesAtTheEdge) {
  EXPECT_TRUE(choose_rate(planted_curve({0.1, 0.3, 0.5}))->is_lowest);
  EXPECT_TRUE(choose_rate(planted_curve({0.001, 0.01, 0.03}))->is_highest);
}

TEST(RateChoice, TakesTheLowerLossOfEqualQualitiesAndThenTheLowerRate) {
  EXPECT_EQ(choose_rate(std::vector{trial(1, {0.9}, {0.3}), trial(2, {0.9}, {0.2})})->best, 1u);
  EXPECT_EQ(choose_rate(std::vector{trial(1, {0.9}, {0.3}), trial(2, {0.9}, {0.3})})->best, 0u);
}

TEST(RateChoice, LetsWhatDivergesLose) {
  EXPECT_EQ(choose_rate(std::vector{trial(1, {0.5}, {2}), trial(2, {0.9}, {kNone})})->best, 0u);
  EXPECT_EQ(choose_rate(std::vector{trial(1, {0.99, 0.99}, {0.1, kNone}), trial(2, {0.5, 0.5}, {1, 1})})->best, 1u);
}

TEST(RateChoice, HasNoneWhereAllHaveDiverged) {
  EXPECT_FALSE(choose_rate(std::vector{trial(1, {0.1}, {kNone}), trial(2, {kNone}, {kNone})}));
  EXPECT_FALSE(choose_rate({}));
}

}  // namespace
}  // namespace syncopate::experiments
