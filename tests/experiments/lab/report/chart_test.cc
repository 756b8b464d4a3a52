#include "experiments/lab/report/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "experiments/lab/report/chart_json.h"
#include "experiments/lab/report/html_page.h"
#include "experiments/lab/report/mode_colours.h"
#include "experiments/lab/report/page_parts.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

nlohmann::json json_of(const AnyChart& chart) { return nlohmann::json::parse(chart_json(chart)); }

Chart accuracy_chart() {
  return {.title = "t",
          .x = {.label = "seconds", .from_zero = true},
          .y = {.label = "accuracy", .most = 1},
          .series = {{.name = "a", .points = {{0, 0.1}, {10, 0.3, "end", 0.2, 0.4}}, .colour = 3, .marker = 2}},
          .view = "time",
          .others = {{.name = "steps", .x = {.label = "steps"}, .series = {{.name = "a", .points = {{500, 0.3}}}}}},
          .note = "a note"};
}

TEST(ChartJson, HasAxesPointsAndAllViews) {
  const nlohmann::json json = json_of(accuracy_chart());
  EXPECT_EQ(json["kind"], "lines");
  EXPECT_EQ(json["y"]["most"], 1);
  EXPECT_EQ(json["note"], "a note");
  ASSERT_EQ(json["views"].size(), 2);
  EXPECT_EQ(json["views"][0]["name"], "time");
  EXPECT_EQ(json["views"][0]["x"]["from_zero"], true);
  EXPECT_EQ(json["views"][1]["series"][0]["points"][0]["x"], 500);
  const nlohmann::json& series = json["views"][0]["series"][0];
  EXPECT_EQ(series["colour"], 3);
  EXPECT_EQ(series["marker"], 2);
  EXPECT_EQ(series["points"][1],
            nlohmann::json::parse(R"({"x": 10, "y": 0.3, "label": "end", "low": 0.2, "high": 0.4})"));
}

TEST(ChartJson, KeepsTheOrderOfViewsAndSaysWhichIsFirst) {
  Chart chart = accuracy_chart();
  EXPECT_FALSE(json_of(chart).contains("begin"));
  EXPECT_FALSE(json_of(chart)["views"][0].contains("part"));
  chart.part = "workers=4";
  chart.others[0].part = "workers=2";
  chart.place = 1;
  const nlohmann::json json = json_of(chart);
  EXPECT_EQ(json["begin"], 1);
  EXPECT_EQ(json["views"][0]["part"], "workers=2");
  EXPECT_EQ(json["views"][1]["part"], "workers=4");
  EXPECT_EQ(json["views"][1]["name"], "time");
}

TEST(ChartJson, LeavesOutWhatIsNoNumberAndSeriesWithNothingToShow) {
  const Chart chart{
      .title = "t",
      .x = {"bytes", true},
      .y = {"accuracy"},
      .series = {{"a", {{1, 1}, {10, kNone}, {100, 2, "", kNone, 3}}}, {"empty", {{kNone, 1}}}, {"none", {}}}};
  const nlohmann::json json = json_of(chart);
  ASSERT_EQ(json["views"][0]["series"].size(), 1);
  EXPECT_EQ(json["views"][0]["series"][0]["points"],
            nlohmann::json::parse(R"([{"x": 1, "y": 1}, {"x": 100, "y": 2}])"));
}

TEST(ChartJson, HasOnePointOfALevelWhateverItsPlace) {
  const Chart chart{.title = "t",
                    .x = {"servers"},
                    .y = {"samples/s"},
                    .series = {{.name = "allreduce", .points = {{kNone, 9}, {kNone, 10}}, .is_level = true}}};
  EXPECT_EQ(json_of(chart)["views"][0]["series"][0]["points"], nlohmann::json::parse(R"([{"x": 0, "y": 9}])"));
  EXPECT_TRUE(has_something(chart));
}

TEST(ChartJson, HasIntervalsWithTheirReference) {
  const nlohmann::json json = json_of(IntervalChart{
      .title = "t",
      .axis = "ratio",
      .reference = 1,
      .rows = {{.name = "local", .value = 1}, {.name = "ps", .value = 0.5, .low = 0.4, .high = 0.6}, {"none", kNone}}});
  EXPECT_EQ(json["kind"], "intervals");
  EXPECT_EQ(json["reference"], 1);
  ASSERT_EQ(json["rows"].size(), 2);
  EXPECT_EQ(json["rows"][1]["low"], 0.4);
}

TEST(ChartJson, HasBarsFromWhereToWhere) {
  const nlohmann::json json =
      json_of(BarChart{.title = "t",
                       .axis = {.label = "ms", .from_zero = true},
                       .rows = {"worker 0", "worker 1"},
                       .series = {{.name = "wait", .bars = {{"worker 1", 2, 3, "1 ms"}, {"worker 0", 0, kNone}}}}});
  EXPECT_FALSE(json.contains("begin"));
  EXPECT_EQ(json["views"][0]["rows"].size(), 2);
  EXPECT_EQ(json["views"][0]["series"][0]["bars"],
            nlohmann::json::parse(R"([{"row": "worker 1", "from": 2, "to": 3, "label": "1 ms"}])"));
}

TEST(ChartJson, CannotEndTheScriptThatHoldsIt) {
  const std::string hostile = "</script><script>alert(1)</script><!-- \x1b[2J \xff";
  Chart chart = accuracy_chart();
  chart.title = chart.y.label = chart.series[0].name = chart.others[0].name = chart.note = hostile;
  const std::string json = chart_json(chart);
  EXPECT_THAT(json, AllOf(Not(HasSubstr("<")), Not(HasSubstr("\x1b")), Not(HasSubstr("\xff"))));
  EXPECT_EQ(json_of(chart)["title"], "</script><script>alert(1)</script><!-- \\x1b[2J \\xff");
}

TEST(ChartSentence, SaysWhatIsShown) {
  EXPECT_EQ(chart_sentence(accuracy_chart()), "Chart of lines and points: t. accuracy over seconds. a.");
  EXPECT_EQ(chart_sentence(BarChart{.title = "Split", .axis = {.label = "ms"}, .rows = {}, .series = {{"wait", {}}}}),
            "Bars: Split. ms. wait.");
}

TEST(HasSomething, IsSoOnlyWhereAValueIsANumber) {
  EXPECT_TRUE(has_something(accuracy_chart()));
  EXPECT_FALSE(has_something(Chart{.title = "t", .x = {}, .y = {}, .series = {{"a", {{kNone, 1}, {1, kNone}}}}}));
  EXPECT_FALSE(has_something(IntervalChart{.title = "t", .axis = "ratio", .rows = {{"a", kNone}}}));
  EXPECT_FALSE(has_something(BarChart{.title = "t", .axis = {}, .rows = {"a"}, .series = {{"b", {}}}}));
}

// The page without Chart.js, which is not ours.
std::string own_part(std::string page) {
  const std::string library(page_scripts().at("chart.min"));
  const std::size_t at = page.find(library);
  EXPECT_NE(at, std::string::npos);
  return at == std::string::npos ? page : page.erase(at, library.size());
}

TEST(HtmlPage, CarriesAllThatItNeedsAndTheLicenceOfWhatItCarries) {
  const std::string page = html_page("One & two", html_charts({accuracy_chart()}));
  EXPECT_THAT(page, AllOf(HasSubstr("<h1>One &amp; two</h1>"), HasSubstr("Chart.js v3"), HasSubstr("MIT License"),
                          HasSubstr("name=\"viewport\""), HasSubstr("prefers-color-scheme: dark")));
  EXPECT_FALSE(std::regex_search(own_part(page), std::regex("(src|href)=|url\\(|@import|https?:|http-equiv|fetch\\(")));
}

TEST(HtmlPage, SaysWhatAChartShowsToThoseWhoDoNotSeeIt) {
  const std::string html = html_charts({accuracy_chart()});
  EXPECT_THAT(html,
              AllOf(HasSubstr("role=\"img\" aria-label=\"Chart of lines and points: t. accuracy over seconds. a.\""),
                    HasSubstr("<figcaption>t</figcaption>"), HasSubstr("<p class=\"note\">a note</p>")));
}

TEST(HtmlPage, LeavesOutChartsOfNothing) {
  EXPECT_EQ(html_charts({Chart{.title = "t", .x = {}, .y = {}, .series = {}}}), "");
}

TEST(HtmlPage, EscapesWhatTablesHold) {
  const std::string html = html_table({{"<a>"}, {"</script>"}}, "\"t\"");
  EXPECT_THAT(html, AllOf(HasSubstr("<th scope=\"col\">&lt;a&gt;</th>"), HasSubstr("<td>&lt;/script&gt;</td>"),
                          HasSubstr("aria-label=\"&quot;t&quot;\"")));
}

TEST(ModeColours, AreTheSameWhateverElseIsCompared) {
  const auto all = mode_colours({"local", "allreduce", "allreduce:ring", "ps:sync", "ps:bounded:4", "ps:async"});
  EXPECT_THAT(mode_colours({"ps:async", "allreduce"}),
              UnorderedElementsAre(Pair("ps:async", all.at("ps:async")), Pair("allreduce", all.at("allreduce"))));
  std::set<int> different;
  for (const auto& [mode, colour] : all) different.insert(colour);
  EXPECT_EQ(different.size(), all.size());
}

TEST(ModeColours, GiveOthersWhatIsLeft) {
  const auto colours = mode_colours({"ps:bounded:2", "ps:bounded:4", "another", "ps:sync"});
  EXPECT_NE(colours.at("ps:bounded:2"), colours.at("ps:bounded:4"));
  EXPECT_EQ(colours.at("ps:sync"), mode_colours({"ps:sync"}).at("ps:sync"));
  EXPECT_EQ(colours.size(), 4);
}

TEST(ModeColours, BeginAgainWhereThereAreNotEnough) {
  std::vector<std::string> modes{"local", "allreduce", "ps:sync"};
  for (int i = 0; i < 17; ++i) modes.push_back("other " + std::to_string(i));
  std::map<int, int> rows;
  for (const int colour : row_colours(modes)) ++rows[colour];
  EXPECT_EQ(rows.size(), 8);
  for (const auto& [colour, count] : rows) EXPECT_LE(count, 4) << colour;
}

}  // namespace
}  // namespace syncopate::experiments
