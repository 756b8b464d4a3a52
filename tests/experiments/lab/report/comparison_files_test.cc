#include "experiments/lab/report/comparison_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/experiments/lab/report/sample_comparison.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

// Cells by row, of a file whose quotes hold no commas.
std::vector<std::vector<std::string>> cells_of(const std::string& csv) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    std::istringstream cells(line + ",");
    for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(cell);
  }
  return rows;
}

std::string cell(const std::vector<std::vector<std::string>>& rows, std::size_t row, const std::string& column) {
  const auto found = std::ranges::find(rows.front(), column);
  return found == rows.front().end() ? "no such column"
                                     : rows[row].at(static_cast<std::size_t>(found - rows.front().begin()));
}

ComparisonReport five_rounds() {
  ComparisonReport report = sample_comparison(
      {sample_row("local", {1000, 1010, 990, 1005, 995}), sample_row("ps:sync", "2", {2000, 2030, 1990, 2000, 1985})});
  report.varied = {"servers"};
  report.order = {{1, 0}, {0, 1}, {0, 1}, {1, 0}, {0, 1}};
  return report;
}

TEST(ComparisonCsv, HasARowForEachRoundAndNothingForWhatIsNotKnown) {
  ComparisonReport report = five_rounds();
  report.rows[1].rounds[3].reset();
  report.rows[1].rounds[4]->final_test_accuracy.reset();
  report.rows[1].rounds[4]->window.reset();
  const auto rows = cells_of(comparison_csv(report));
  ASSERT_THAT(rows, SizeIs(1 + 5 + 4));
  EXPECT_THAT(rows, Each(SizeIs(rows.front().size())));
  EXPECT_EQ(cell(rows, 1, "label"), "\"local\"");
  EXPECT_EQ(cell(rows, 1, "vary:servers"), "");
  EXPECT_EQ(cell(rows, 1, "place_in_round"), "1");
  EXPECT_EQ(cell(rows, 7, "vary:servers"), "\"2\"");
  EXPECT_EQ(cell(rows, 7, "round"), "1");
  EXPECT_EQ(cell(rows, 7, "seed"), "2");
  EXPECT_EQ(cell(rows, 7, "samples_per_second"), "2030");
  EXPECT_EQ(cell(rows, 7, "goodput"), "0.625");
  EXPECT_EQ(cell(rows, 7, "window_samples_per_second"), "2537.5");
  EXPECT_EQ(cell(rows, 7, "bits_per_parameter_out"), "32");  // 1,080,000 bytes for 270,000 parameters
  EXPECT_EQ(cell(rows, 9, "round"), "4");
  EXPECT_EQ(cell(rows, 9, "final_test_accuracy"), "");
  EXPECT_EQ(cell(rows, 9, "window_samples_per_second"), "");
}

TEST(ComparisonCsv, DoublesQuotes) {
  EXPECT_THAT(comparison_csv(sample_comparison({sample_row("a\"b", {1000})})), HasSubstr("\n\"a\"\"b\","));
}

TEST(ComparisonJson, HasRoundsIntervalsVerdictsAndTheOrderOfRuns) {
  ComparisonReport report = five_rounds();
  report.command = "run_experiment compare";
  report.rows[0].rounds[2].reset();
  const auto json = nlohmann::json::parse(comparison_json(report));
  EXPECT_EQ(json["command"], "run_experiment compare");
  EXPECT_EQ(json["order"][0], nlohmann::json({"ps:sync servers=2", "local"}));
  const auto& row = json["rows"][1];
  EXPECT_EQ(row["values"]["servers"], "2");
  EXPECT_EQ(row["speed_ratio"]["verdict"], "not judged");  // four rounds have both
  EXPECT_TRUE(row["speed_ratio"]["interval"].is_null());
  EXPECT_TRUE(json["rows"][0]["rounds"][2].is_null());
  EXPECT_EQ(row["rounds"][1]["samples_per_second"], 2030);
  EXPECT_THAT(row["rounds"][1]["evaluations"], SizeIs(2));
  const auto whole = nlohmann::json::parse(comparison_json(five_rounds()));
  EXPECT_EQ(whole["rows"][1]["speed_ratio"]["verdict"], "faster");
  EXPECT_GT(whole["rows"][1]["speed_ratio"]["interval"][0], 1);
  EXPECT_TRUE(whole["rows"][0]["speed_ratio"].is_null());
}

TEST(ComparisonJson, IsWholeWithoutARound) {
  EXPECT_EQ(nlohmann::json::parse(comparison_json({}))["rows"].size(), 0);
  EXPECT_EQ(nlohmann::json::parse(comparison_json(sample_comparison({sample_row("local", {})})))["rows"].size(), 1);
}

TEST(ComparisonPage, SaysWhatWasComparedWhereAndWhenAndNeedsNothingElse) {
  ComparisonReport report = five_rounds();
  report.machine.host = "one";
  report.machine.cores = 2;
  report.started = "2026-03-01 12:00:00 UTC";
  report.config_toml = "workers = 2\nservers = 1\n";
  const std::string html = comparison_html(report);
  EXPECT_THAT(html, AllOf(HasSubstr("<h1>mlp &lt;on&gt; digits</h1>"), HasSubstr("on one (2 cores)"),
                          HasSubstr("2026-03-01 12:00:00 UTC"), HasSubstr("name=\"viewport\""),
                          HasSubstr("<td>ps:sync servers=2</td>"), HasSubstr("workers = 2\nservers = 1\n")));
  EXPECT_THAT(html, HasSubstr("<td>./run_experiment --config=out/ps:sync/config.toml</td>"));
  EXPECT_THAT(html, AllOf(Not(HasSubstr("http-equiv")), Not(HasSubstr("href="))));
}

}  // namespace
}  // namespace syncopate::experiments
