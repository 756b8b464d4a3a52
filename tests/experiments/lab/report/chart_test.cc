#include "experiments/lab/report/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>

#include "experiments/lab/report/chart_scale.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::DoubleEq;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::Not;
using testing::SizeIs;

int count(const std::string& svg, const std::string& pattern) {
  const std::regex regex(pattern);
  return static_cast<int>(std::distance(std::sregex_iterator(svg.begin(), svg.end(), regex), std::sregex_iterator()));
}

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

TEST(Chart, PutsTheLeastAtTheLeftAndTheMostAtTheTop) {
  const std::string svg =
      svg_of({.title = "t", .x = {"time"}, .y = {"accuracy"}, .series = {{"a", {{0, 1}, {10, 3}}}}});
  // The frame is 398 wide from 66, 230 high from 34.
  EXPECT_THAT(svg, HasSubstr("d=\"M66.0 264.0 L464.0 34.0\""));
}

TEST(Chart, LeavesOutWhatIsNoNumberAndSeriesWithNothingToShow) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::string svg = svg_of({.title = "t",
                                  .x = {"bytes", true},
                                  .y = {"accuracy"},
                                  .series = {{"a", {{1, 1}, {10, none}, {100, 2}}}, {"empty", {{none, 1}}}}});
  EXPECT_THAT(svg, AllOf(HasSubstr("a: 100, 2"), Not(HasSubstr("a: 10,")), Not(HasSubstr("nan")), Not(HasSubstr("inf")),
                         Not(HasSubstr(">empty</text>"))));
}

TEST(Chart, ShowsMarksWithLabelsAndNoLineWhereTheyAreNotJoined) {
  const std::string svg =
      svg_of({.title = "t",
              .x = {"bytes"},
              .y = {"samples/s"},
              .series = {{.name = "a", .points = {{1, 20'000, "fp16"}, {2, 40'000}}, .joined = false}}});
  EXPECT_THAT(svg, AllOf(HasSubstr(">fp16</text>"), HasSubstr(">30k</text>"), Not(HasSubstr(" L"))));
}

TEST(Chart, PrintsNoLabelOverAnother) {
  std::vector<ChartPoint> points;
  for (int i = 0; i < 40; ++i) points.push_back({1 + 0.001 * i, 1, "the same place"});
  const std::string svg = svg_of({.title = "t", .x = {"x", false, true}, .y = {"y"}, .series = {{"a", points, false}}});
  EXPECT_GE(count(svg, ">the same place</text>"), 1);
  EXPECT_LE(count(svg, ">the same place</text>"), 8);
  EXPECT_EQ(count(svg, "class=\"mark\""), 40 + 1);  // and one in the legend
}

TEST(Chart, TellsSeriesApartByMarkersAndColoursAlike) {
  const auto svg_with = [](int colour, int marker) {
    return svg_of({.title = "t",
                   .x = {"x"},
                   .y = {"y"},
                   .series = {{.name = "a", .points = {{1, 1}}, .colour = colour, .marker = marker}}});
  };
  EXPECT_NE(svg_with(0, 0), svg_with(0, 1));
  EXPECT_NE(svg_with(0, 0), svg_with(1, 0));
  for (int marker = 0; marker < 8; ++marker) {
    for (int other = 0; other < marker; ++other) EXPECT_NE(svg_with(0, marker), svg_with(0, other));
  }
}

TEST(Chart, DrawsIntervalsAndWhatDoesNotDependOnX) {
  const std::string svg = svg_of({.title = "t",
                                  .x = {"servers"},
                                  .y = {"samples/s"},
                                  .series = {{.name = "ps", .points = {{1, 5, "", 4, 6}, {2, 7, "", 6, 8}}},
                                             {.name = "allreduce", .points = {{0, 9}}, .is_level = true}}});
  EXPECT_EQ(count(svg, "class=\"interval\""), 6);
  EXPECT_EQ(count(svg, "class=\"level\""), 1);
  EXPECT_THAT(svg, HasSubstr(">allreduce</text>"));
}

TEST(Chart, EndsAnIntervalWhereTheAxisBegins) {
  const Chart chart{.title = "t",
                    .x = {"x"},
                    .y = {.label = "samples/s", .from_zero = true},
                    .series = {{.name = "a", .points = {{1, 5, "", -40, 50}}}}};
  EXPECT_THAT(svg_of(chart), Not(HasSubstr(">-")));
}

TEST(Chart, EscapesWhatItIsGiven) {
  EXPECT_THAT(svg_of(Chart{.title = "a < b & \"c\"", .x = {""}, .y = {""}, .series = {}}),
              HasSubstr("a &lt; b &amp; &quot;c&quot;"));
}

TEST(IntervalChart, HasALineForEachRowWithItsIntervalAndTheReference) {
  const std::string svg = svg_of(
      IntervalChart{.title = "t",
                    .axis = "ratio",
                    .reference = 1,
                    .rows = {{.name = "local", .value = 1}, {.name = "ps", .value = 0.5, .low = 0.4, .high = 0.6}}});
  EXPECT_THAT(svg, AllOf(HasSubstr(">local</text>"), HasSubstr("ps: 0.5 [0.4, 0.6]"), HasSubstr("#666")));
  EXPECT_EQ(count(svg, "class=\"interval\""), 3);
  EXPECT_GE(count(svg, "class=\"tick\""), 3);
}

TEST(Chart, HasLinesWithoutMarksWhereNoneAreWanted) {
  Chart chart{.title = "t", .x = {.label = "x"}, .y = {.label = "y"}, .series = {}};
  chart.series.push_back({.name = "line", .points = {{.x = 1, .y = 1}, {.x = 2, .y = 2}}, .marked = false});
  const std::string svg = svg_of(chart);
  EXPECT_EQ(count(svg, "class=\"mark\""), 0);
  EXPECT_EQ(count(svg, ">line<"), 1);
}

}  // namespace
}  // namespace syncopate::experiments
