#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "experiments/report/comparison_files.h"
#include "experiments/report/comparison_text.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

RunReport report_of(double samples_per_second) {
  RunReport report;
  report.samples_per_second = samples_per_second;
  report.step_ms_median = 1.9;
  report.split_ms = {.step = 2, .exposed_wait = 0.5};
  report.communication_ms = 1.2;
  report.bytes_out_per_step = 1080000;
  report.bytes_in_per_step = 1080000;
  report.memory = {.worker = 50'000'000, .server = 0, .all = 100'000'000};
  report.staleness_mean = 2.5;
  report.final_test_accuracy = 0.9731;
  report.training_seconds = 12;
  report.seconds_to_target = 5.5;
  report.samples_to_target = 60000;
  return report;
}

ComparedRow row_of(const std::string& mode, const std::string& servers, std::vector<RunReport> reports) {
  ComparedRow row{.label = servers.empty() ? mode : mode + " servers=" + servers, .mode = mode};
  if (!servers.empty()) row.values = {{"servers", servers}};
  row.parameters = 270'000;
  row.evals.resize(reports.size());
  row.rounds.assign(reports.begin(), reports.end());
  return row;
}

ComparisonReport comparison_of(std::vector<ComparedRow> rows) {
  return {.job = "mlp <on> digits", .varied = {"servers"}, .rows = std::move(rows)};
}

TEST(Comparison, PutsModesSideBySide) {
  std::vector<ComparedRow> rows = {row_of("local", "", {report_of(1000), report_of(1020)}),
                                   row_of("allreduce", "", {report_of(2020)}), row_of("ps:sync", "", {report_of(1015)}),
                                   row_of("ps:async", "", {RunReport()})};
  rows[2].rounds[0]->seconds_to_target.reset();
  rows[3].rounds[0]->final_test_accuracy = 0.5;
  EXPECT_EQ(comparison_text(comparison_of(rows)),
            "mode                    samples/s  ratio  ms/step  wait %  MB/step  staleness  MB memory  "
            "accuracy  to target\n"
            "local      1,010 [1,000 .. 1,020]      1     1.90    25.0    2.160       2.50        100  "
            "  0.9731      5.5 s\n"
            "allreduce                   2,020  2.00x     1.90    25.0    2.160       2.50        100  "
            "  0.9731      5.5 s\n"
            "ps:sync                     1,015  1.00x     1.90    25.0    2.160       2.50        100  "
            "  0.9731          -\n"
            "ps:async                        -      -        -       -        -          -          0  "
            "  0.5000          -\n");
}

TEST(Comparison, HasARowForEachRepeatAndNothingForWhatIsNotKnown) {
  RunReport unevaluated = report_of(1020);
  unevaluated.final_test_accuracy.reset();
  unevaluated.samples_to_target.reset();
  const std::vector<ComparedRow> rows = {row_of("ps:sync", "2", {report_of(1000), unevaluated})};
  const std::string csv = comparison_csv(comparison_of(rows));
  // 1,080,000 bytes are 32 bits for each of 270,000 parameters.
  EXPECT_THAT(csv,
              AllOf(HasSubstr("label,mode,value,repeat,samples_per_second,"),
                    HasSubstr("\n\"ps:sync servers=2\",\"ps:sync\",\"2\",0,1000,1.9,0.5,1.2,0,1080000,1080000,32,32,"
                              "2.5,50000000,0,100000000,0.9731,0.9731,,,12,5.5,60000\n"),
                    HasSubstr("\",1,1020,1.9,0.5,1.2,0,1080000,1080000,32,32,2.5,50000000,0,100000000,,,,,12,5.5,\n")));
}

TEST(Comparison, ShowsTheTimeOfACodecAndTheFigureThatADataSetIsJudgedBy) {
  RunReport report = report_of(1000);
  report.codec_ms = 0.25;
  report.final_figures.auc = 0.8125;
  const std::vector<ComparedRow> rows = {row_of("ps:sync", "", {report})};
  const std::string text = comparison_text(comparison_of(rows));
  EXPECT_THAT(text, AllOf(HasSubstr("codec ms"), HasSubstr("AUC"), HasSubstr("0.250"), HasSubstr("0.8125")));
  EXPECT_THAT(text, Not(HasSubstr("accuracy")));
}

TEST(Comparison, ShowsTableAndChartsInAPageThatNeedsNothingElse) {
  std::vector<ComparedRow> rows = {row_of("allreduce", "", {report_of(1000)}), row_of("ps:sync", "1", {report_of(500)}),
                                   row_of("ps:sync", "2", {report_of(700)})};
  rows[0].evals[0] = {{.training_seconds = 1, .accuracy = 0.5}, {.training_seconds = 2, .accuracy = 0.75}};
  const std::string html = comparison_html(comparison_of(rows));
  EXPECT_THAT(html, AllOf(HasSubstr("<h1>mlp &lt;on&gt; digits</h1>"), HasSubstr("<td>ps:sync servers=2</td>"),
                          HasSubstr("<title>allreduce: 2, 0.75</title>"), HasSubstr("seconds to the target"),
                          HasSubstr("samples/s over servers")));
  EXPECT_THAT(html, AllOf(Not(HasSubstr("http-equiv")), Not(HasSubstr("<script")), Not(HasSubstr("href="))));
}

TEST(Comparison, DrawsNothingOverAnOptionThatIsNoNumber) {
  const std::vector<ComparedRow> rows = {row_of("ps:sync", "tensor", {report_of(500)}),
                                         row_of("ps:sync", "hash", {report_of(700)})};
  EXPECT_THAT(comparison_html(comparison_of(rows)), Not(HasSubstr("over servers")));
}

}  // namespace
}  // namespace syncopate::experiments
