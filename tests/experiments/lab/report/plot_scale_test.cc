#include "experiments/lab/report/plot_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::DoubleEq;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::Le;
using testing::SizeIs;

TEST(Ticks, AreRoundAndReachWhatIsToBeShown) {
  EXPECT_THAT(ticks(0, 1, false), ElementsAre(0, DoubleEq(0.2), DoubleEq(0.4), DoubleEq(0.6), DoubleEq(0.8), 1));
  EXPECT_THAT(ticks(3, 42, false), ElementsAre(0, 10, 20, 30, 40, 50));
  EXPECT_THAT(ticks(0.5, 2500, true), ElementsAre(DoubleEq(0.1), 1, 10, 100, 1000, 10000));
}

TEST(Ticks, AreThreeOrMoreOnEveryAxis) {
  const std::pair<double, double> ranges[] = {{0.31, 0.32}, {1, 1.5},     {2, 2.1},
                                              {7, 9.99},    {1e-6, 2e-6}, {99'000, 151'000}};
  for (const auto& [low, high] : ranges) {
    for (const bool logarithmic : {false, true}) {
      const std::vector<double> values = ticks(low, high, logarithmic);
      EXPECT_THAT(values, SizeIs(AllOf(Ge(3), Le(12))))
          << low << " to " << high << (logarithmic ? ", logarithmic" : "");
      EXPECT_LE(values.front(), low * 1.000001);
      EXPECT_GE(values.back(), high * 0.999999);
    }
  }
}

TEST(Ticks, DoNotGoBeyondWhatCanBe) {
  EXPECT_THAT(ticks(0.1, 0.985, false, 1), Each(Le(1.0)));
  EXPECT_EQ(ticks(0.1, 0.985, false, 1).back(), 1);
}

TEST(ChartScale, HasNoAccuracyPastOneAndReachesTheLargest) {
  const ChartScale scale({.label = "accuracy", .most = 1}, {0.32, 0.97, 1});
  EXPECT_EQ(scale.fraction(1), 1);
  EXPECT_LT(scale.fraction(0.97), 1);
  EXPECT_EQ(ChartScale({.label = "accuracy", .most = 1}, {0.9, 1.02}).fraction(1), 1);  // 1.02: an interval's bound
  const ChartScale one({.label = "accuracy", .most = 1}, {0.99});
  EXPECT_THAT(one.tick_values(), AllOf(SizeIs(Ge(3)), Each(Le(1.0))));
}

TEST(ChartScale, HasAPlaceForZeroOnALogarithmicAxis) {
  const ChartScale scale({.label = "MB", .logarithmic = true}, {0, 0.2, 20});
  EXPECT_TRUE(scale.shows(0));
  EXPECT_FALSE(scale.shows(-1));
  EXPECT_EQ(scale.fraction(0), 0);
  EXPECT_GT(scale.fraction(0.2), 0.05);
  EXPECT_EQ(scale.tick_values().front(), 0);
}

TEST(ChartScale, BeginsAtZeroWhereItIsTold) {
  EXPECT_EQ(ChartScale({.label = "samples/s", .from_zero = true}, {900, 1000}).fraction(0), 0);
  EXPECT_EQ(ChartScale({.label = "samples/s", .from_zero = true}, {1000}).fraction(0), 0);
}

}  // namespace
}  // namespace syncopate::experiments
