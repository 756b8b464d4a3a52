#include "experiments/lab/report/comparison_charts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "experiments/lab/report/chart_json.h"
#include "experiments/lab/report/mode_colours.h"
#include "tests/experiments/lab/report/sample_comparison.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

// The JSON of the first chart whose title has `words`; empty where there is none.
std::string chart(const ComparisonReport& report, const std::string& words) {
  for (const AnyChart& one : comparison_charts(report, figures_of(report))) {
    if (title_of(one).find(words) != std::string::npos) return chart_json(one);
  }
  return {};
}

std::vector<std::string> titles(const ComparisonReport& report) {
  std::vector<std::string> all;
  for (const AnyChart& one : comparison_charts(report, figures_of(report))) all.push_back(title_of(one));
  return all;
}

ComparisonReport over_servers() {
  ComparisonReport report = sample_comparison(
      {sample_row("allreduce", {1000}), sample_row("ps:sync", "1", {500}), sample_row("ps:sync", "2", {700})});
  report.varied = {"servers"};
  return report;
}

TEST(ComparisonCharts, DrawEveryRowOverWhatWasVaried) {
  const auto json = nlohmann::json::parse(chart(over_servers(), "samples/s of the whole job over servers"));
  const auto& series = json["views"][0]["series"];
  ASSERT_EQ(series.size(), 2);
  EXPECT_EQ(series[0]["name"], "allreduce");
  EXPECT_EQ(series[0]["level"], true);
  EXPECT_EQ(series[0]["points"][0]["y"], 1000);
  EXPECT_EQ(series[1]["points"], nlohmann::json::parse(R"([{"x": 1, "y": 500}, {"x": 2, "y": 700}])"));
}

ComparisonReport over_workers() {
  const auto of = [](const char* mode, const char* workers, double speed) {
    ComparedRow row = sample_row(mode, {speed});
    row.label += std::string(" workers=") + workers;
    row.values = {{"workers", workers}};
    return row;
  };
  ComparisonReport report =
      sample_comparison({of("ps:sync", "1", 100), of("ps:sync", "4", 390), of("ps:sync", "64", 3000)});
  report.varied = {"workers"};
  return report;
}

TEST(ComparisonCharts, DrawSpeedOverWorkersBesideLinearScaling) {
  const auto json = nlohmann::json::parse(chart(over_workers(), "samples/s of the whole job over workers"));
  const auto& linear = json["views"][0]["series"][1];
  EXPECT_EQ(linear["name"], "linear from ps:sync at 1");
  EXPECT_EQ(linear["points"].back()["y"], 6400) << "64 times the speed of one";
  EXPECT_EQ(json["y"]["logarithmic"], true);
  EXPECT_THAT(chart(over_workers(), "MB of memory"), Not(HasSubstr("linear from")));
}

TEST(ComparisonCharts, ShowEfficiencyOverWorkers) {
  const auto json = nlohmann::json::parse(chart(over_workers(), "Scaling efficiency"));
  EXPECT_DOUBLE_EQ(json["views"][0]["series"][0]["points"][1]["y"].get<double>(), 0.975);
}

TEST(ComparisonCharts, HoldSpeedAgainstClosedFormsWhereTheyAreKnown) {
  ComparisonReport report = over_workers();
  EXPECT_THAT(chart(report, "samples/s of the whole job over workers"), Not(HasSubstr("model")));
  for (ComparedRow& row : report.rows)
    row.step = StepParts{.ideal_ms = 1, .measured_ms = 2, .parts = {}, .predicted = 500};
  const auto json = nlohmann::json::parse(chart(report, "samples/s of the whole job over workers"));
  const auto& model = json["views"][0]["series"][2];
  EXPECT_EQ(model["name"], "ps:sync, model");
  EXPECT_EQ(model["dashed"], true);
  EXPECT_EQ(model["colour"], json["views"][0]["series"][0]["colour"]);
  EXPECT_EQ(model["points"].size(), 3);
  const auto efficiency = nlohmann::json::parse(chart(report, "Scaling efficiency"))["views"][0]["series"][1];
  EXPECT_EQ(efficiency["name"], "ps:sync, model");
  EXPECT_EQ(efficiency["points"][1]["y"], 1.25) << "500 of 4 times 100 samples/s";
}

TEST(ComparisonCharts, ShowWhereTheTimeOfAStepWent) {
  ComparisonReport report = over_servers();
  EXPECT_EQ(chart(report, "Where the time of a step went"), "");
  report.rows[1].step =
      StepParts{.ideal_ms = 2, .measured_ms = 5, .parts = {{"data", 0.001}, {"imbalance", -0.5}, {"thin link", 3}}};
  const auto json = nlohmann::json::parse(chart(report, "Where the time of a step went"));
  const auto& view = json["views"][0];
  EXPECT_EQ(view["rows"].size(), 1);
  ASSERT_EQ(view["series"].size(), 2) << "what takes no hundredth of a step is left out";
  EXPECT_EQ(view["series"][1]["name"], "thin link");
  EXPECT_EQ(view["series"][1]["bars"][0]["from"], 2);
  EXPECT_EQ(view["series"][1]["bars"][0]["to"], 5);
}

// Two modes with servers, over workers and servers, and one without.
ComparisonReport over_workers_and_servers() {
  ComparisonReport report = sample_comparison({});
  report.varied = {"workers", "servers"};
  const auto add = [&](const char* mode, const std::string& workers, const std::string& servers) {
    ComparedRow row = sample_row(mode, {100.0 * std::stoi(workers)});
    row.values = {{"workers", workers}};
    if (!servers.empty()) row.values.emplace_back("servers", servers);
    row.label += " workers=" + workers + (servers.empty() ? "" : " servers=" + servers);
    row.workers = std::stoi(workers);
    row.step = StepParts{.ideal_ms = 2, .measured_ms = 5, .parts = {{"incast", 3}}};
    report.rows.push_back(std::move(row));
  };
  for (const char* workers : {"1", "2", "4", "8", "16"}) {
    add("allreduce", workers, "");
    for (const char* servers : {"1", "2", "4"}) add("ps:sync", workers, servers), add("ps:async", workers, servers);
  }
  return report;
}

TEST(ComparisonCharts, DivideManyRowsPartsOfAStepIntoViews) {
  const auto json = nlohmann::json::parse(chart(over_workers_and_servers(), "Where the time of a step went"));
  ASSERT_EQ(json["views"].size(), 3);
  EXPECT_EQ(json["begin"], 2);
  const auto& view = json["views"][1];
  EXPECT_EQ(view["part"], "servers=2");
  ASSERT_EQ(view["rows"].size(), 15) << "allreduce has no servers, and stands in all";
  EXPECT_EQ(view["rows"][0], "allreduce workers=1");
  EXPECT_EQ(view["rows"][1], "ps:sync workers=1") << "what all have in common is not repeated";
  EXPECT_EQ(view["series"][1]["bars"].size(), 15);
}

TEST(ComparisonCharts, DivideManyCurvesOfEfficiencyIntoViews) {
  const auto json = nlohmann::json::parse(chart(over_workers_and_servers(), "Scaling efficiency"));
  ASSERT_EQ(json["views"].size(), 3);
  EXPECT_EQ(json["views"][0]["part"], "servers=1");
  std::vector<std::string> names;
  for (const auto& series : json["views"][0]["series"]) names.push_back(series["name"]);
  EXPECT_THAT(names, testing::ElementsAre("allreduce", "ps:sync", "ps:async", "as one alone"));
}

TEST(ComparisonCharts, ShowThePartOfTheLargestValuesFirst) {
  const auto json = nlohmann::json::parse(chart(over_workers_and_servers(), "samples/s of the whole job over workers"));
  EXPECT_EQ(json["begin"], 2);
  EXPECT_EQ(json["views"][2]["part"], "servers=4");
}

TEST(ComparisonCharts, BeginWithWhatWasVariedAndMixNoNumbersOfWorkers) {
  ComparisonReport report = over_workers();
  report.rows[1].rounds[0]->bytes_out_per_step *= 3;
  EXPECT_THAT(titles(report).front(), "samples/s of the whole job over workers");
  EXPECT_THAT(titles(report), Each(AllOf(Not(HasSubstr("What travels")), Not(HasSubstr("ratio")))));
  EXPECT_THAT(titles(report), Contains("MB a step and worker over workers"));
}

TEST(ComparisonCharts, SayThatTheyAreSimulated) {
  ComparisonReport report = over_workers();
  report.simulated = true;
  EXPECT_THAT(titles(report), Each(HasSubstr("simulated")));
  EXPECT_THAT(chart(report, "simulated samples/s"),
              HasSubstr(R"("y":{"label":"simulated samples/s of the whole job")"));
}

TEST(ComparisonCharts, DrawNothingOverAnOptionThatIsNoNumber) {
  ComparisonReport report =
      sample_comparison({sample_row("ps:sync", "tensor", {500}), sample_row("ps:sync", "hash", {700})});
  report.varied = {"servers"};
  EXPECT_EQ(chart(report, "over servers"), "");
}

TEST(ComparisonCharts, ShowWhatTravelsOnlyWhereItDiffersAndThenEveryRow) {
  ComparisonReport report = over_servers();
  EXPECT_EQ(chart(report, "What travels"), "");
  report.rows[1].rounds[0]->bytes_out_per_step /= 4;
  report.rows[0].rounds[0]->bytes_out_per_step = 0;  // as local's
  report.rows[0].rounds[0]->bytes_in_per_step = 0;
  EXPECT_THAT(chart(report, "What travels, and how fast"),
              AllOf(HasSubstr(R"({"x":0.0,"y":1000.0})"), HasSubstr(R"("y":700.0,"label":"2")")));
}

TEST(ComparisonCharts, GiveAModeOneColourInAllOfThem) {
  ComparisonReport report = over_servers();
  report.rows[1].rounds[0]->bytes_out_per_step /= 4;
  const std::map<std::string, int> colours = mode_colours({"allreduce", "ps:sync"});
  int series_seen = 0;
  for (const AnyChart& one : comparison_charts(report, figures_of(report))) {
    const auto json = nlohmann::json::parse(chart_json(one));
    const auto& drawn = json["kind"] == "intervals" ? json["rows"] : json["views"][0]["series"];
    for (const auto& series : drawn) {
      const std::string mode = series["name"].get<std::string>().substr(0, 3) == "all" ? "allreduce" : "ps:sync";
      EXPECT_EQ(series["colour"], colours.at(mode)) << series["name"];
      ++series_seen;
    }
  }
  EXPECT_GT(series_seen, 6);
}

TEST(ComparisonCharts, ShowSpeedAsRatiosWithIntervals) {
  const ComparisonReport report = sample_comparison(
      {sample_row("local", {1000, 1010, 990, 1005, 995}), sample_row("ps:sync", {2000, 2030, 1990, 2000, 1985})});
  EXPECT_THAT(chart(report, "as a ratio to local"),
              AllOf(HasSubstr("with 95 % interval"), HasSubstr("\"low\":"), HasSubstr("\"high\":")));
}

TEST(ComparisonCharts, ShowWhatCameOfTheRatesThatWereTried) {
  ComparisonReport report = over_servers();
  report.trials = {{"allreduce", 0.1, {0.5, 0.7}, {}}, {"allreduce", 1, {0.75, 0.8}, {}}};
  EXPECT_THAT(chart(report, "rates that were tried"),
              AllOf(HasSubstr(R"("x":0.1,"y":0.6)"), HasSubstr("\"low\":0.5"), HasSubstr("\"high\":0.7")));
}

TEST(ComparisonCharts, AreNoneOfNothing) {
  EXPECT_TRUE(comparison_charts({}, figures_of({})).empty());
  const ComparisonReport empty = sample_comparison({sample_row("local", {}), sample_row("ps:sync", {})});
  EXPECT_TRUE(comparison_charts(empty, figures_of(empty)).empty());
}

}  // namespace
}  // namespace syncopate::experiments
