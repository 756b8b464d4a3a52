#include "experiments/lab/report/report_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "experiments/lab/report/evals_csv.h"
#include "experiments/lab/report/json_members.h"
#include "tests/support/build_paths.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;

// Everything that may be missing is there.
RunReport full_report() {
  RunReport report;
  report.samples_per_second = 1000;
  report.training_seconds = 2.5;
  report.total_steps = 40;
  report.lost_workers = {2};
  report.window = SteadyWindow{.seconds = 2, .samples_per_second = 1100, .steps = 36};
  report.split_ms = {.step = 8, .data = 1, .forward = 2, .backward = 3, .straggle = 0.5, .exposed_wait = 1.5};
  report.communication_ms = 4;
  report.servers[1] = {.pushes = 40, .busy = std::chrono::seconds(1), .core_wait = std::chrono::milliseconds(20)};
  report.memory = {.worker = 10, .server = 20, .all = 50};
  report.machine = MachineLoad{.seconds = 3, .cores = 2, .workers = 2, .own = 0.5, .governor = "powersave"};
  report.stragglers = {{.worker = 1, .delay_ms_mean = 2, .delay_ms_max = 3, .slowdown = 1.5}};
  report.staleness_bins = {{.staleness = 1, .steps = 30, .loss = 0.5, .excess_loss = 0.01}};
  report.final_test_accuracy = 0.9;
  report.final_figures = {.auc = 0.8, .hit_rate = 0.7, .ndcg = 0.6, .r2 = 0.5, .rmse = 12};
  report.final_validation = ValidationFigures{.accuracy = 0.85, .loss = 0.4};
  report.seconds_to_target = 1.5;
  report.samples_to_target = 1500;
  return report;
}

nlohmann::ordered_json written_again(const nlohmann::ordered_json& json) {
  const ReadJson read = ReadJson::parse(json.dump());
  std::string error;
  const RunReport report = read_report(JsonMembers(read, error));
  EXPECT_EQ(error, "");
  return report_json(report);
}

TEST(ReportJson, IsReadAsItWasWritten) {
  for (const RunReport& report : {full_report(), RunReport()}) {
    const nlohmann::ordered_json json = report_json(report);
    EXPECT_EQ(written_again(json).dump(1), json.dump(1));
  }
}

std::string results_page() {
  std::ifstream file(testing_support::source_directory() + "/results/README.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ReportJson, IsExplainedKeyByKey) {
  const std::string page = results_page();
  const nlohmann::ordered_json json = report_json(full_report());
  for (const auto& [key, value] : json.items()) EXPECT_THAT(page, HasSubstr("`" + key + "`"));
}

TEST(EvalsCsv, IsExplainedColumnByColumn) {
  const std::string page = results_page(), header = evals_csv_header();
  std::istringstream columns(header.substr(0, header.size() - 1));
  for (std::string column; std::getline(columns, column, ',');) EXPECT_THAT(page, HasSubstr("`" + column + "`"));
}

}  // namespace
}  // namespace syncopate::experiments
