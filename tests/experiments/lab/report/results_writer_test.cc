#include "experiments/lab/report/results_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "experiments/cluster/host/git_commit.h"
#include "experiments/config/toml.h"
#include "experiments/lab/report/evals_csv.h"
#include "tests/support/resolved.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::string contents(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class ResultsWriterTest : public testing::Test {
 protected:
  ResultsWriterTest() {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("results_writer_test.") + test.name());
    fs::remove_all(folder_);
    RunRequest request;
    request.output = folder_ / "nested" / "run";
    config_ = resolved(request, "stamp");
  }
  ~ResultsWriterTest() override { fs::remove_all(folder_); }

  fs::path folder_;
  ResolvedRun config_;
};

StepRecord sample_step() {
  StepRecord step;
  step.step = 7;
  step.epoch = 1;
  step.end = TimePoint() + std::chrono::milliseconds(1500);
  step.total = std::chrono::microseconds(2000);
  step.data = std::chrono::microseconds(10);
  step.forward = std::chrono::microseconds(500);
  step.backward = std::chrono::microseconds(900);
  step.sync.exposed_wait = std::chrono::nanoseconds(300500);
  step.sync.optimizer = std::chrono::microseconds(100);
  step.sync.communication = std::chrono::microseconds(400);
  step.sync.codec = std::chrono::microseconds(80);
  step.sync.copy = std::chrono::microseconds(50);
  step.launch = std::chrono::microseconds(60);
  step.sync.bytes_out = 1000;
  step.straggle = std::chrono::microseconds(70);
  step.sync.bytes_in = 2000;
  step.sync.staleness_mean = 1.5;
  step.sync.staleness_max = 3;
  step.sync.dropped = 0.25;
  step.samples = 64;
  step.loss = 0.25;
  step.accuracy = 0.875;
  step.core_wait = std::chrono::microseconds(30);
  step.compute_core_wait = std::chrono::microseconds(20);
  step.sync.backward_codec = std::chrono::microseconds(40);
  step.sync.loss_scale = 65536;
  step.sync.skipped = 1;
  step.sync.last_shard = 2;
  step.sync.last_shard_alone = std::chrono::microseconds(250);
  return step;
}

TEST(Csv, HasAValueForEachColumn) {
  const std::string row = steps_csv_row(2, 1, TimePoint() + std::chrono::seconds(1), sample_step(), true);
  EXPECT_EQ(row,
            "2,1,7,1,0,0.500000,2000.0,10.0,500.0,900.0,70.0,300.5,100.0,400.0,80.0,50.0,60.0,1000,2000,1.500,3,0.25,"
            "65536,1,30.0,20.0,40.0,2,250.0,"
            "64,0.875,0.25\n");
  EXPECT_EQ(std::ranges::count(row, ','), std::ranges::count(steps_csv_header(), ','));
  const std::string of_profile = steps_csv_row(2, 1, TimePoint(), sample_step(), false);
  EXPECT_TRUE(of_profile.ends_with(",64,,\n")) << "nothing is learnt";
  const std::string eval = evals_csv_row(
      1, {.epoch = 2, .step = 30, .samples_seen = 400, .training_seconds = 0.5, .accuracy = 0.975, .loss = 0.125});
  EXPECT_EQ(eval, "1,2,30,400,0.500000,0.975,0.125,,,,,,,,,,\n");
  const std::string ranked = evals_csv_row(0, {.figures = {.auc = {}, .hit_rate = 0.625, .ndcg = 0.375}});
  EXPECT_THAT(ranked, testing::EndsWith(",0,0,,0.625,0.375,,,,,,,\n"));
  const std::string validated =
      evals_csv_row(0, {.validation = {{.accuracy = 0.75, .loss = 0.5}}, .train_loss = 0.25, .train_accuracy = 0.875});
  EXPECT_THAT(validated, testing::EndsWith(",0,0,,,,0.75,0.5,0.25,0.875,,,\n"));
  EXPECT_EQ(std::ranges::count(eval, ','), std::ranges::count(evals_csv_header(), ','));
}

TEST_F(ResultsWriterTest, LeavesAConfigThatReproducesTheRunBeforeItBegins) {
  ASSERT_TRUE(ResultsWriter::create(config_, {}).ok());
  EXPECT_EQ(contents(config_.output + "/config.toml"), to_toml(config_));
  EXPECT_TRUE(fs::is_directory(config_.output + "/logs"));
  for (const fs::directory_entry& entry : fs::directory_iterator(config_.output)) {
    EXPECT_THAT(entry.path().filename().string(), testing::Not(testing::StartsWith(".reserve-")));
  }
}

TEST_F(ResultsWriterTest, KeepsRecordedStepsOnTheDiskWhileTheRunGoesOn) {
  Result<ResultsWriter> writer = ResultsWriter::create(config_, {});
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  ManualClock clock;
  clock.advance(std::chrono::seconds(100));
  ASSERT_TRUE(writer->flush_if_due(clock.now()).ok());
  writer->begin_repeat(TimePoint());
  writer->add(1, sample_step());
  clock.advance(std::chrono::milliseconds(900));
  ASSERT_TRUE(writer->flush_if_due(clock.now()).ok());
  EXPECT_EQ(contents(config_.output + "/steps.csv"), steps_csv_header()) << "not yet due";
  clock.advance(std::chrono::milliseconds(100));
  ASSERT_TRUE(writer->flush_if_due(clock.now()).ok());
  const std::string expected = steps_csv_header() + steps_csv_row(0, 1, TimePoint(), sample_step());
  EXPECT_EQ(contents(config_.output + "/steps.csv"), expected);
  EXPECT_EQ(contents(config_.output + "/evals.csv"), evals_csv_header());
}

TEST_F(ResultsWriterTest, SummarisesRepeatsByTheirMedian) {
  Result<ResultsWriter> writer = ResultsWriter::create(config_, {});
  ASSERT_TRUE(writer.ok());
  std::array<RunReport, 3> reports;
  reports[0].samples_per_second = 300;
  reports[1].samples_per_second = 100;
  reports[2].samples_per_second = 200;
  reports[2].final_test_accuracy = 0.97;
  ASSERT_TRUE(writer->write_summary(reports, {"run-7", "completed", {"worker 1 lost at step 120"}}).ok());
  const auto json = nlohmann::json::parse(contents(config_.output + "/summary.json"));
  EXPECT_EQ(json["run"], "run-7");
  EXPECT_EQ(json["outcome"], "completed");
  EXPECT_EQ(json["events"][0], "worker 1 lost at step 120");
  EXPECT_EQ(json["repeats"], 3);
  EXPECT_EQ(json["samples_per_second"], 200);
  EXPECT_EQ(json["samples_per_second_min"], 100);
  EXPECT_EQ(json["samples_per_second_max"], 300);
  EXPECT_EQ(json["final_test_accuracy"], 0.97);
  EXPECT_TRUE(json["seconds_to_target"].is_null());
  EXPECT_EQ(json["each_repeat"][0]["samples_per_second"], 300);
}

TEST_F(ResultsWriterTest, RecordsWhatLaysOnWhichShard) {
  Result<ResultsWriter> writer = ResultsWriter::create(config_, {});
  ASSERT_TRUE(writer.ok());
  const ShardingReport sharding{{ps::ShardingPolicy::kTensor, 4096}, {.servers = 2}, {{3000, 1000}, {2, 1}, 1.5}};
  ASSERT_TRUE(writer->write_summary({}, {.run_id = "run-7", .sharding = sharding}).ok());
  const auto json = nlohmann::json::parse(contents(config_.output + "/summary.json"))["sharding"];
  EXPECT_EQ(json,
            nlohmann::json::parse(
                R"({"policy": "tensor", "chunk_bytes": 4096, "skew": 1.5, "bytes": [3000, 1000], "chunks": [2, 1]})"));
}

TEST_F(ResultsWriterTest, WritesASummaryOfARunThatEndedBeforeItsFirstStep) {
  Result<ResultsWriter> writer = ResultsWriter::create(config_, {});
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->write_summary({}, {"run-7", "worker 0 lost", {}}).ok());
  const auto json = nlohmann::json::parse(contents(config_.output + "/summary.json"));
  EXPECT_EQ(json["outcome"], "worker 0 lost");
  EXPECT_TRUE(json["each_repeat"].empty());
}

TEST_F(ResultsWriterTest, RecordsTheMachineAndWhatRan) {
  config_.mode = Mode::kPs;
  ASSERT_TRUE(ResultsWriter::create(config_, this_environment()).ok());
  const auto json = nlohmann::json::parse(contents(config_.output + "/environment.json"));
  EXPECT_EQ(json["transport"], "shm");
  EXPECT_GE(json["cores"], 1);
  EXPECT_GT(json["memory_gib"], 0);
  EXPECT_FALSE(json["libraries"]["onednn"].get<std::string>().empty());
}

TEST_F(ResultsWriterTest, RefusesAFolderThatHoldsFiles) {
  ASSERT_TRUE(ResultsWriter::create(config_, {}).ok());
  const auto again = ResultsWriter::create(config_, {});
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(again.status().message(), HasSubstr("holds files already"));
}

TEST_F(ResultsWriterTest, SaysBeforeTheRunThatItsOutputCannotBeWritten) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "nested") << "a file where a folder should be";
  const auto writer = ResultsWriter::create(config_, {});
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(writer.status().message(), HasSubstr((folder_ / "nested").string()));
  EXPECT_THAT(writer.status().message(), HasSubstr("Not a directory"));
}

TEST_F(ResultsWriterTest, NamesLogsAfterProcesses) {
  const auto writer = ResultsWriter::create(config_, {});
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(writer->log_path("worker 1"), config_.output + "/logs/worker-1.log");
}

TEST(AppendFile, ReportsAFullDiskAndKeepsWhatItCouldNotWrite) {
  Result<AppendFile> file = AppendFile::create("/dev/full");
  ASSERT_TRUE(file.ok()) << file.status().message();
  file->add("1,2,3\n");
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Status status = file->flush();
    EXPECT_EQ(status.code(), Code::kResourceExhausted);
    EXPECT_EQ(status.message(), "/dev/full: cannot be written: No space left on device");
  }
}

TEST_F(ResultsWriterTest, FindsTheCommitOfLooseAndPackedReferences) {
  const std::string commit(40, 'a'), packed(40, 'b');
  fs::create_directories(folder_ / ".git/refs/heads");
  fs::create_directories(folder_ / "build/release");
  std::ofstream(folder_ / ".git/HEAD") << "ref: refs/heads/main\n";
  EXPECT_EQ(git_commit_of(folder_ / "build/release"), "") << "no commit yet";
  std::ofstream(folder_ / ".git/packed-refs") << "# pack-refs\n" << packed << " refs/heads/main\n";
  EXPECT_EQ(git_commit_of(folder_ / "build/release"), packed);
  std::ofstream(folder_ / ".git/refs/heads/main") << commit << "\n";
  EXPECT_EQ(git_commit_of(folder_ / "build/release"), commit);

  fs::create_directories(folder_ / ".git/worktrees/other");
  fs::create_directories(folder_ / "other");
  std::ofstream(folder_ / "other/.git") << "gitdir: ../.git/worktrees/other\n";
  std::ofstream(folder_ / ".git/worktrees/other/HEAD") << "ref: refs/heads/main\n";
  std::ofstream(folder_ / ".git/worktrees/other/commondir") << "../..\n";
  EXPECT_EQ(git_commit_of(folder_ / "other"), commit);
}

}  // namespace
}  // namespace syncopate::experiments
