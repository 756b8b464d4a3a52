#include "experiments/lab/report/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "common/random.h"
#include "experiments/lab/report/evaluation_charts.h"
#include "experiments/lab/report/plot_canvas.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

ChartSeries line(const std::string& name, std::vector<ChartPoint> points) {
  return {.name = name, .points = std::move(points)};
}

Chart two_lines() {
  return {
      .title = "Throughput",
      .x = {.label = "servers"},
      .y = {.label = "samples/s", .from_zero = true},
      .series = {line("ps:sync", {{1, 100}, {2, 180}, {4, 300}}), line("ps:async", {{1, 150}, {2, 260}, {4, 400}})}};
}

TEST(Plot, IsTheseLettersWhereThereIsNoUnicode) {
  EXPECT_EQ(plot_of(two_lines(), {.columns = 44, .lines = 6}),
            "Throughput\n"
            "samples/s\n"
            "400 +                       ....b b ps:async\n"
            "300 +              .............a a ps:sync\n"
            "200 +     ....b.............\n"
            "    |b........a....\n"
            "100 +a....\n"
            "  0 +\n"
            "    +----------------------------\n"
            "     1   1.5  2   2.5  3   3.5  4\n"
            "               servers\n");
}

TEST(Plot, IsTheseDotsOfBraille) {
  EXPECT_EQ(plot_of(two_lines(), {.columns = 44, .lines = 5, .unicode = true}),
            "Throughput\n"
            "samples/s\n"
            "400 ┤                  ⢀⣀⣀⠤⠤⠤⠒⠒⠊b b ps:async\n"
            "300 ┤        ⢀b⡠⠤⠤⠒⠒⠒⠉⠉⢁⣀⣀⣀⠤⠤⠤⠤⠒a a ps:sync\n"
            "200 ┤ ⣀⣀⠤⠔⠒⣊⣉⠥a⠤⠒⠒⠒⠒⠉⠉⠉⠁\n"
            "100 ┤b⠔⠒⠊⠉⠉\n"
            "  0 ┤\n"
            "    └────────────────────────────\n"
            "     1   1.5  2   2.5  3   3.5  4\n"
            "               servers\n");
}

TEST(Plot, DrawsBarsFromZeroAndAMarkAtTheReference) {
  const IntervalChart chart{
      .title = "Ratio",
      .axis = "of allreduce",
      .reference = 1,
      .rows = {{.name = "allreduce", .value = 1}, {.name = "ps", .value = 0.5}, {.name = "gossip", .value = 1.25}}};
  EXPECT_EQ(plot_of(chart, {.columns = 40, .unicode = true}),
            "Ratio\n"
            "of allreduce\n"
            "allreduce │███████████████████▎     1\n"
            "ps        │█████████▋        ┊      0.5\n"
            "gossip    │████████████████████████ 1.25\n");
  EXPECT_EQ(plot_of(chart, {.columns = 40}),
            "Ratio\n"
            "of allreduce\n"
            "allreduce |###################      1\n"
            "ps        |##########        :      0.5\n"
            "gossip    |######################## 1.25\n");
}

TEST(Plot, ShowsIntervalsBehindBarsWhereThereIsRoom) {
  const IntervalChart chart{.title = "ratios",
                            .axis = "ratio",
                            .rows = {{.name = "local", .value = 1},
                                     {.name = "ps:async", .value = 0.5, .low = 0.4, .high = 0.625, .colour = 1}}};
  const std::string wide = plot_of(chart, {.columns = 60});
  EXPECT_THAT(wide, HasSubstr(" 0.5 [0.4, 0.625]\n"));
  IntervalChart long_names = chart;
  for (IntervalRow& row : long_names.rows) row.name += std::string(40, 'n');
  EXPECT_THAT(plot_of(long_names, {.columns = 40}), Not(HasSubstr("[")));
}

TEST(Plot, DrawsErrorBarsThroughTheirPoints) {
  Chart chart{.title = "t",
              .x = {.label = "x"},
              .y = {.label = "y", .from_zero = true},
              .series = {{.name = "s", .points = {{0, 5}, {10, 5, "", 0, 10}}}}};
  const std::string text = plot_of(chart, {.columns = 40, .lines = 5});
  const std::vector<std::string> lines = lines_in(text);
  ASSERT_EQ(lines.size(), 2u + 5 + 3) << text;
  const std::size_t column = lines[4].find('a', 10);
  ASSERT_NE(column, std::string::npos) << text;
  for (const std::size_t row : {2u, 3u, 5u, 6u}) EXPECT_EQ(lines[row].substr(column, 1), ".") << text;
  EXPECT_THAT(lines[2], HasSubstr("10 +")) << "the bar's end is on the scale";
}

TEST(Plot, DrawsPartsOfBarsAsTheLettersOfTheirSeries) {
  const BarChart chart{.title = "A step",
                       .axis = {.label = "ms"},
                       .rows = {"ring", "ps"},
                       .series = {{.name = "computing", .bars = {{"ring", 0, 10}, {"ps", 0, 10}}},
                                  {.name = "the link", .bars = {{"ring", 10, 15}, {"ps", 10, 30}}}}};
  EXPECT_EQ(plot_of(chart, {.columns = 40, .unicode = true}),
            "A step\n"
            "ms\n"
            "ring │aaaaaaaaaabbbbbb                15\n"
            "ps   │aaaaaaaaaabbbbbbbbbbbbbbbbbbbbb 30\n"
            "  a computing\n"
            "  b the link\n");
}

TEST(Plot, ShowsWhatDistinguishesNamesWhereTheyWouldBeCut) {
  Chart chart = two_lines();
  chart.series[0].name = "allreduce:ring overlap=on shape=1gbit+50us";
  chart.series[1].name = "allreduce:ring overlap=on shape=10gbit+50us";
  const std::string text = plot_of(chart, {.columns = 60, .lines = 6});
  EXPECT_THAT(text, HasSubstr("Throughput (allreduce:ring overlap=on)"));
  EXPECT_THAT(text, HasSubstr(" shape=1gbit+50us\n"));
  EXPECT_THAT(text, HasSubstr(" shape=10gbit+50us\n"));
}

TEST(Plot, HasNoLettersInBarsOfOnePart) {
  const BarChart chart{.title = "b",
                       .axis = {.label = "x"},
                       .rows = {"ps:sync, one", "ps:async, one"},
                       .series = {{.name = "ps:sync", .bars = {{"ps:sync, one", 0, 2}}},
                                  {.name = "ps:async", .bars = {{"ps:async, one", 0, 4}}}}};
  EXPECT_THAT(plot_of(chart, {.columns = 60}), AllOf(HasSubstr("####"), Not(HasSubstr("  a ps:sync\n"))));
}

TEST(Plot, HasALevelForWhatDoesNotDependOnX) {
  Chart chart = two_lines();
  chart.series[1].is_level = true;
  EXPECT_THAT(plot_of(chart, {.columns = 60, .lines = 6}), HasSubstr("...   ...   ..."));
}

TEST(Plot, SaysThatThereIsNothingToDraw) {
  EXPECT_EQ(plot_of(Chart{.title = "Empty", .x = {}, .y = {}, .series = {}}, {}), "Empty\n  nothing to draw\n");
  EXPECT_EQ(plot_of(IntervalChart{.title = "Empty", .axis = "", .rows = {}}, {}), "Empty\n  nothing to draw\n");
}

// A chart with points at random, on axes at random.
Chart random_chart(std::uint64_t seed) {
  Random random(seed, 0);
  Chart chart{.title = std::string(random.below(90), 't'),
              .x = {.label = std::string(random.below(90), 'x'), .logarithmic = random.below(2) == 0},
              .y = {.label = "y", .logarithmic = random.below(2) == 0, .from_zero = random.below(2) == 0},
              .series = {}};
  const std::size_t count = 1 + random.below(9);
  for (std::size_t i = 0; i < count; ++i) {
    ChartSeries series = line("série " + std::string(random.below(60), 'n'), {});
    series.joined = random.below(4) != 0;
    const std::size_t points = 1 + random.below(40);
    for (std::size_t j = 0; j < points; ++j) {
      series.points.push_back(
          {static_cast<double>(1 + random.below(100000)), static_cast<double>(1 + random.below(1000))});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

TEST(Plot, IsNeverWiderThanAsked) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const PlotStyle style{.columns = 40 + static_cast<int>(seed % 81),
                          .lines = 4 + static_cast<int>(seed % 20),
                          .unicode = seed % 2 == 0};
    for (const std::string& one : lines_in(plot_of(random_chart(seed), style))) {
      ASSERT_LE(columns_of(one), style.columns) << "seed " << seed << ": " << one;
    }
  }
}

// Each series' letter stands in the plot, on the first or last row of which the extremes are drawn.
TEST(Plot, DrawsAPointAtEachExtreme) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Chart chart{.title = "", .x = {.label = ""}, .y = {.label = ""}, .series = {}};
    Random random(seed, 1);
    const auto number = [&] { return static_cast<double>(random.below(1000)); };
    chart.series.push_back(line("", {{number(), number()}, {1000, 1000}, {0, 0}}));
    chart.series[0].joined = false;
    const std::vector<std::string> lines = lines_in(plot_of(chart, {.columns = 60, .lines = 8}));
    EXPECT_EQ(lines[2].back(), 'a') << "the largest, at the upper right";
    EXPECT_THAT(lines[9], HasSubstr("0 +a")) << "the least, at the lower left";
  }
}

TEST(Plot, HasColoursOnlyWhereTheyAreWanted) {
  EXPECT_THAT(plot_of(two_lines(), {}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(plot_of(two_lines(), {.colour = true}), HasSubstr("\x1b[34ma ps:sync\x1b[0m"));
}

TEST(Plot, ShowsNothingThatATerminalWouldInterpret) {
  Chart chart = two_lines();
  chart.title = chart.series[0].name = "\x1b[2J";
  EXPECT_THAT(plot_of(chart, {.unicode = true}), Not(HasSubstr("\x1b")));
}

TEST(PlotStyle, FollowsTheTerminal) {
  const auto style = [](TerminalFacts facts) { return plot_style(facts); };
  EXPECT_EQ(style({}).columns, 80);
  EXPECT_FALSE(style({}).colour);
  EXPECT_FALSE(style({}).unicode);
  EXPECT_EQ(style({.columns = 100}).columns, 100);
  EXPECT_EQ(style({.columns = 300}).columns, 120);
  EXPECT_EQ(style({.columns = 10}).columns, kFewestPlotColumns);
  EXPECT_TRUE(style({.columns = 100}).colour);
  EXPECT_FALSE(style({.columns = 100, .no_colour = "1"}).colour);
  EXPECT_FALSE(style({.columns = 100, .term = "dumb"}).colour);
  EXPECT_TRUE(style({.lang = "en_GB.UTF-8"}).unicode);
  EXPECT_TRUE(style({.lc_all = "C.utf8", .lang = "C"}).unicode);
  EXPECT_FALSE(style({.lc_all = "C", .lang = "en_GB.UTF-8"}).unicode);
  EXPECT_FALSE(style({.lc_ctype = "POSIX", .lang = "en_GB.UTF-8"}).unicode);
}

TEST(FittedText, IsCutByCharacters) {
  EXPECT_EQ(fitted("abc", 3, true), "abc");
  EXPECT_EQ(fitted("abcd", 3, true), "a..");
  EXPECT_EQ(fitted("äöü", 3, true), "äöü");
  EXPECT_EQ(fitted("äöü", 3, false), "???");
  EXPECT_EQ(columns_of(fitted("äöüäöü", 4, true)), 4);
}

TEST(EvaluationCharts, AreQualityAndLossOverTime) {
  EXPECT_THAT(evaluation_charts({}), IsEmpty());
  EXPECT_THAT(evaluation_charts({{}}), IsEmpty());
  const std::vector<AnyChart> charts = evaluation_charts(
      {{{.training_seconds = 1, .accuracy = 0.5, .loss = 2}}, {{.training_seconds = 2, .accuracy = 0.75, .loss = 1}}});
  ASSERT_THAT(charts, SizeIs(2));
  const Chart& loss = std::get<Chart>(charts[1]);
  ASSERT_THAT(loss.series, SizeIs(2));
  EXPECT_EQ(loss.series[1].points[0].y, 1);
  EXPECT_EQ(std::get<Chart>(charts[0]).series[0].points[0].y, 0.5);
}

}  // namespace
}  // namespace syncopate::experiments
