#include "experiments/report/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Ticks, AreRoundAndWithinTheAxis) {
  EXPECT_THAT(ticks(0, 1, false), ElementsAre(0, DoubleEq(0.2), DoubleEq(0.4), DoubleEq(0.6), DoubleEq(0.8), 1));
  EXPECT_THAT(ticks(-3, 42, false), ElementsAre(0, 10, 20, 30, 40));
  EXPECT_THAT(ticks(0.5, 2500, true), ElementsAre(1, 10, 100, 1000));
  EXPECT_THAT(ticks(1.5, 60, true), ElementsAre(2, 5, 10, 20, 50));
}

TEST(Chart, PutsTheLeastAtTheLeftAndTheMostAtTheTop) {
  const std::string svg =
      svg_of({.title = "t", .x = {"time"}, .y = {"accuracy"}, .series = {{"a", {{0, 1}, {10, 3}}}}});
  // The frame is 630 wide from 70, 300 high from 34, with a margin of 4 in 108 parts each.
  EXPECT_THAT(svg, AllOf(HasSubstr("<circle cx=\"93.3\" cy=\"322.9\""), HasSubstr("<circle cx=\"676.7\" cy=\"45.1\"")));
  EXPECT_THAT(svg, HasSubstr("d=\"M93.3 322.9 L676.7 45.1\""));
}

TEST(Chart, LeavesOutWhatIsNoNumberOrHasNoLogarithm) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::string svg = svg_of({.title = "t",
                                  .x = {"bytes", true},
                                  .y = {"accuracy"},
                                  .series = {{"a", {{0, 1}, {10, none}, {100, 2}}}, {"empty", {}}}});
  EXPECT_THAT(svg, AllOf(HasSubstr("a: 100, 2"), Not(HasSubstr("a: 0,")), Not(HasSubstr("a: 10,")),
                         Not(HasSubstr("nan")), Not(HasSubstr("inf")), HasSubstr(">empty</text>")));
}

TEST(Chart, ShowsMarksWithLabelsAndNoLineWhereTheyAreNotJoined) {
  const std::string svg =
      svg_of({.title = "t",
              .x = {"bytes"},
              .y = {"samples/s"},
              .series = {{.name = "a", .points = {{1, 20'000, "fp16"}, {2, 40'000}}, .joined = false}}});
  EXPECT_THAT(svg,
              AllOf(HasSubstr(">fp16</text>"), HasSubstr(">30,000</text>"), HasSubstr("d=\"\""), Not(HasSubstr(" L"))));
}

TEST(Chart, EscapesWhatItIsGiven) {
  EXPECT_THAT(svg_of({.title = "a < b & \"c\"", .x = {""}, .y = {""}, .series = {}}),
              HasSubstr("a &lt; b &amp; &quot;c&quot;"));
}

}  // namespace
}  // namespace syncopate::experiments
