#include "experiments/lab/report/report_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "experiments/lab/report/evals_csv.h"
#include "experiments/lab/report/json_members.h"
#include "experiments/lab/report/results_writer.h"
#include "tests/support/build_paths.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;

// Everything that may be missing is there.
RunReport full_report() {
  RunReport report;
  report.samples_per_second = 1000;
  report.training_seconds = 2.5;
  report.goodput = 0.875;
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

// One description writes and reads: what it leaves out is missed by neither. Others read these names.
TEST(ReportJson, HasTheseFigures) {
  std::string names;
  const nlohmann::ordered_json flat = report_json(full_report()).flatten();
  for (const auto& [name, value] : flat.items()) names += name.substr(1) + " ";
  EXPECT_EQ(
      names,
      "samples_per_second final_test_accuracy final_test_loss final_test_auc final_test_hr10 final_test_ndcg10 "
      "final_test_r2 final_test_rmse test_labels final_validation_r2 final_validation_accuracy "
      "final_validation_loss first_train_loss final_train_loss seconds_to_target samples_to_target "
      "seconds_to_target_resolution training_seconds used_samples goodput lost_workers/0 "
      "steady_window/seconds steady_window/samples_per_second steady_window/steps total_steps total_samples "
      "step_ms_median step_ms_p95 "
      "step_split_ms/step step_split_ms/data step_split_ms/forward step_split_ms/backward step_split_ms/straggle "
      "step_split_ms/exposed_wait step_split_ms/optimizer step_split_ms/other step_split_ms/communication "
      "step_split_ms/hidden_communication step_split_ms/codec step_split_ms/copy step_split_ms/launch hidden_part "
      "stragglers/0/worker stragglers/0/delay_ms_mean stragglers/0/delay_ms_max stragglers/0/slowdown "
      "servers/0/server servers/0/pushes servers/0/busy_seconds servers/0/serving_seconds servers/0/bytes_in "
      "servers/0/bytes_out servers/0/core_wait_seconds bytes_out_per_step bytes_in_per_step memory_bytes/worker "
      "memory_bytes/server memory_bytes/all machine/seconds machine/cores machine/core_quota machine/workers "
      "machine/own machine/others machine/steal machine/throttled machine/waiting machine/load_average_before "
      "machine/load_average_after machine/mhz_before machine/mhz_after machine/governor staleness_mean "
      "staleness_p95 staleness_max staleness_histogram/0/staleness staleness_histogram/0/steps "
      "staleness_histogram/0/train_loss staleness_histogram/0/excess_train_loss dropped loss_scale skipped_steps ");
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

TEST(EvalsCsv, HasTheseColumns) {
  EXPECT_EQ(evals_csv_header(),
            "repeat,epoch,step,samples_seen,training_s,accuracy,loss,auc,hr10,ndcg10,validation_accuracy,"
            "validation_loss,train_loss,train_accuracy,r2,rmse,validation_r2\n");
}

TEST(StepsCsv, HasTheseColumns) {
  EXPECT_EQ(
      steps_csv_header(),
      "repeat,worker,step,epoch,position,end_s,total_us,data_us,forward_us,backward_us,straggle_us,"
      "exposed_wait_us,optimizer_us,communication_us,codec_us,copy_us,launch_us,bytes_out,bytes_in,"
      "staleness_mean,staleness_max,dropped,loss_scale,skipped,core_wait_us,compute_core_wait_us,backward_codec_us,"
      "last_shard,last_shard_us,samples,accuracy,loss\n");
}

TEST(EvalsCsv, IsExplainedColumnByColumn) {
  const std::string page = results_page(), header = evals_csv_header();
  std::istringstream columns(header.substr(0, header.size() - 1));
  for (std::string column; std::getline(columns, column, ',');) EXPECT_THAT(page, HasSubstr("`" + column + "`"));
}

}  // namespace
}  // namespace syncopate::experiments
