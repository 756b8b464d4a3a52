#include "experiments/lab/demo/demo_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/lab/demo/demo_charts.h"
#include "experiments/lab/demo/demo_figures.h"
#include "experiments/lab/demo/demo_line.h"
#include "experiments/lab/demo/demo_page.h"
#include "experiments/lab/report/comparison_files.h"
#include "experiments/lab/report/mode_colours.h"
#include "tests/experiments/lab/demo/small_demo.h"
#include "tests/experiments/lab/report/sample_comparison.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using Document = DemoFigures::Document;

Demo small_demo() { return *read_demo("small", kSmallDemo); }

// The figures of a run at these speeds with one server and with two.
DemoFigures figures_at(double one, double two) {
  ComparisonReport report = sample_comparison({sample_row("ps:sync", "1", {one}), sample_row("ps:sync", "2", {two})});
  report.varied = {"servers"};
  return {{{"speed", Document::parse(comparison_json(report))},
           {"one", Document::parse(R"({"parts": [{"part": "incast", "ms": 120.4}]})")}},
          small_demo().figures};
}

TEST(DemoAnswer, SaysWhatTheFiguresOfThisRunSay) {
  EXPECT_THAT(*answer_of(small_demo(), figures_at(100, 150)),
              ElementsAre("By these figures none of the choices was right.", "Two servers are 1.50x as fast as one.",
                          "They help.", "One server's link costs 120 ms a step."));
  EXPECT_THAT(*answer_of(small_demo(), figures_at(100, 90)),
              ElementsAre("By these figures a was right.", "Two servers are 0.90x as fast as one.", "They do not help.",
                          "One server's link costs 120 ms a step."));
  EXPECT_EQ(answer_of(small_demo(), figures_at(100, 200))->front(), "By these figures b was right.");
}

TEST(DemoAnswer, IsCheckedAgainstTheFiguresOfThisRun) {
  const auto right = [](double one, double two, const std::string& toml) {
    std::vector<bool> all;
    const Result<std::vector<CheckedAnswer>> answers = check_answers(small_demo(), figures_at(one, two), toml);
    EXPECT_TRUE(answers.ok()) << answers.status().message();
    for (const CheckedAnswer& answer : *answers) all.push_back(answer.is_right);
    return all;
  };
  EXPECT_THAT(right(100, 150, "growth = 1.5\nservers = 2\nmode = \"ps:sync\"\n"), ElementsAre(true, true, true));
  EXPECT_THAT(right(100, 150, "growth = 1.52\nservers = 2.01\nmode = \"PS:Sync\"\n"), ElementsAre(true, false, true))
      << "within 2 %; exactly; in any case of letters";
  EXPECT_THAT(right(100, 90, "growth = 1.5\nservers = 2\nmode = \"ps:sync\"\n"), ElementsAre(false, false, true));
}

TEST(DemoAnswer, SaysWhatIsMissingOrOfAWrongKind) {
  const auto lines = [](const std::string& toml) {
    std::vector<std::string> all;
    const Result<std::vector<CheckedAnswer>> answers = check_answers(small_demo(), figures_at(1, 2), toml);
    EXPECT_TRUE(answers.ok()) << answers.status().message();
    for (const CheckedAnswer& answer : *answers) all.push_back(answer.line);
    return all;
  };
  EXPECT_THAT(lines("growth = \"much\"\nmode = 7\n"),
              ElementsAre("growth = much: must be a number", "servers: is missing; add a line servers = a number",
                          "mode = 7: not right. It stands before servers=."));
  EXPECT_THAT(lines("growth = 2\nservers = 1\n"),
              ElementsAre("growth = 2: right", "servers = 1: not right. Look at the line.",
                          "mode: is missing; add a line mode = \"a word\""));
  const auto failure = [](const std::string& toml) {
    return check_answers(small_demo(), figures_at(1, 2), toml).status().message();
  };
  EXPECT_THAT(failure("grow = 2\n"), HasSubstr("grow: no exercise has this key; they have growth, servers, mode"));
  EXPECT_THAT(failure("mode = 1\nmode = 2\n"), HasSubstr("mode: stands twice"));
  EXPECT_THAT(failure("what\n"), HasSubstr("must be name = value"));
  EXPECT_THAT(check_answers(small_demo(), figures_at(0, 2), "mode = 1\n").status().message(),
              HasSubstr("growth: this run has no such figure; run the demonstration again"));
}

TEST(DemoCharts, DrawTheRowsOfThisRun) {
  const Result<std::vector<AnyChart>> charts = demo_charts(small_demo(), figures_at(100, 150));
  ASSERT_TRUE(charts.ok()) << charts.status().message();
  ASSERT_THAT(*charts, SizeIs(1));
  const Chart& chart = std::get<Chart>(charts->front());
  ASSERT_THAT(chart.series, SizeIs(1));
  EXPECT_EQ(chart.series[0].name, "ps:sync");
  ASSERT_THAT(chart.series[0].points, SizeIs(2));
  EXPECT_EQ(chart.series[0].points[1].x, 2);
  EXPECT_EQ(chart.series[0].points[1].y, 150);
  const std::string page =
      demo_html(small_demo(), {.charts = *charts, .sentences = {"They help."}, .exercises = {"How?"}});
  EXPECT_THAT(page, AllOf(HasSubstr("How much faster"), HasSubstr("They help."), HasSubstr("<li>How?</li>"),
                          HasSubstr("Look: where the line ends."), HasSubstr("A simulated cluster, in virtual time"),
                          HasSubstr("href=\"speed/comparison.html\"")));
}

TEST(DemoCharts, DrawCurvesAndBars) {
  Demo demo = small_demo();
  demo.plots = {{.kind = DemoPlot::Kind::kCurves, .title = "c", .run = "speed", .rows = "ps:sync servers=2"},
                {.kind = DemoPlot::Kind::kBars,
                 .title = "b",
                 .y_label = "x",
                 .bars = {{"ps:sync, growth", "growth"}, {"no", "1 / 0"}}}};
  const Result<std::vector<AnyChart>> charts = demo_charts(demo, figures_at(100, 150));
  ASSERT_TRUE(charts.ok()) << charts.status().message();
  const Chart& curves = std::get<Chart>(charts->at(0));
  ASSERT_THAT(curves.series, SizeIs(1));
  EXPECT_EQ(curves.series[0].points.back().y, 0.9731);
  EXPECT_EQ(curves.x.label, "simulated seconds of training");
  const BarChart& bars = std::get<BarChart>(charts->at(1));
  ASSERT_THAT(bars.rows, SizeIs(1)) << "what has no value has no bar";
  EXPECT_EQ(bars.series.at(0).bars.at(0).to, 1.5);
  EXPECT_EQ(bars.series.at(0).colour, mode_colours({"ps:sync"}).at("ps:sync"));
  demo.plots[0].run = "one";
  EXPECT_THAT(demo_charts(demo, figures_at(1, 2)).status().message(), HasSubstr("one: must be a comparison"));
}

TEST(DemoLine, IsReadByItself) {
  const Result<DemoRequest> request = parse_demo_line({"demo", "straggler", "--check", "a.toml", "--output=o"});
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->name, "straggler");
  EXPECT_EQ(request->check, "a.toml");
  EXPECT_EQ(request->output, "o");
  EXPECT_THAT(parse_demo_line({"demo", "a", "b"}).status().message(), HasSubstr("one at a time"));
  EXPECT_THAT(parse_demo_line({"demo", "--check=a"}).status().message(), HasSubstr("needs the name"));
  EXPECT_THAT(parse_demo_line({"demo", "a", "--workers=2"}).status().message(), HasSubstr("no such option"));
}

}  // namespace
}  // namespace syncopate::experiments
