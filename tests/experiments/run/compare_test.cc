#include "experiments/run/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "experiments/run/initial_weights.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

RunReport report_of(double samples_per_second) {
  RunReport report;
  report.samples_per_second = samples_per_second;
  return report;
}

// compare, with jobs that end as a test says instead of running.
class CompareTest : public testing::Test {
 protected:
  CompareTest() {
    base_.mode = Mode::kAllreduce;
    base_.model = "softmax";
    base_.workers = 2;
    base_.repeat = 2;
    base_.output = "out";
    std::filesystem::current_path(folder_.path());
  }
  ~CompareTest() override { std::filesystem::current_path(before_); }

  ExitCode compare_modes(const std::string& modes) {
    const Result<std::vector<ComparedRun>> runs = comparison_runs(base_, modes);
    EXPECT_TRUE(runs.ok()) << runs.status().message();
    std::filesystem::create_directory("out");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const ExitCode exit = compare({base_, *runs}, [this](const RunConfig& config) { return run(config); });
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return exit;
  }
  // The folders of the jobs that were run, in order.
  std::vector<std::string> outputs() const {
    std::vector<std::string> outputs;
    for (const RunConfig& config : ran_) outputs.push_back(config.output);
    return outputs;
  }

  RunConfig base_;
  std::map<std::string, double> gaps_;    // how far off a job ends, of the way it goes, by its folder; 0 unless given
  std::map<std::string, double> speeds_;  // samples a second; 1 unless given
  std::map<std::string, JobResult> failures_;
  std::vector<RunConfig> ran_;
  std::string out_, err_;

 private:
  const std::filesystem::path before_ = std::filesystem::current_path();
  const testing_support::TemporaryFolder folder_;

  JobResult run(const RunConfig& config) {
    ran_.push_back(config);
    if (failures_.contains(config.output)) return failures_[config.output];
    JobResult result;
    result.weights = initial_weights(config, {})->values;
    for (float& weight : result.weights) weight += static_cast<float>(1 + gaps_[config.output]);
    result.evals.resize(1);
    result.reports = {report_of(speeds_.contains(config.output) ? speeds_[config.output] : 1)};
    return result;
  }
};

TEST_F(CompareTest, ProvesEqualityThenMeasuresInTurns) {
  EXPECT_EQ(compare_modes("allreduce,ps:async"), ExitCode::kSuccess);
  EXPECT_THAT(outputs(), ElementsAre("out/equality/local", "out/equality/allreduce", "out/equality/ps-sync",  //
                                     "out/allreduce-1", "out/ps-async-1", "out/allreduce-2", "out/ps-async-2"));
  EXPECT_THAT(err_, IsEmpty());
}

TEST_F(CompareTest, ProvesEqualityOnAFewStepsAtARateOfItsOwnAndMeasuresTheJobItself) {
  base_.learning_rate = 0.5;
  base_.epochs = 7;
  base_.target_accuracy = 0.9;
  EXPECT_EQ(compare_modes("ps:async"), ExitCode::kSuccess);
  EXPECT_EQ(ran_.front().learning_rate, equality_job(base_).learning_rate);
  EXPECT_EQ(ran_.front().steps, equality_job(base_).steps);
  EXPECT_EQ(ran_.front().target_accuracy, 0);
  EXPECT_EQ(ran_.back().learning_rate, 0.5);
  EXPECT_EQ(ran_.back().epochs, 7);
  EXPECT_EQ(ran_.back().target_accuracy, 0.9);
  EXPECT_EQ(ran_.back().repeat, 1);
}

// Its norms see one worker's batch, and local's all of them.
TEST_F(CompareTest, LeavesLocalOutOfTheProofForAModelWithBatchNormAndSaysSo) {
  base_.model = "resnet20";
  EXPECT_EQ(compare_modes("local,ps:async"), ExitCode::kSuccess);
  EXPECT_THAT(outputs(), ElementsAre("out/equality/allreduce", "out/equality/ps-sync",  //
                                     "out/local-1", "out/ps-async-1", "out/local-2", "out/ps-async-2"));
  EXPECT_THAT(out_, HasSubstr("equality: allreduce and ps:sync follow the same curve"));
  EXPECT_THAT(out_, HasSubstr("local is left out, whose batch norms see all workers' batches as one"));
}

TEST_F(CompareTest, ProvesEqualityWithoutCompressionAndMeasuresWithIt) {
  base_.compress = *parse_codec("int8");
  EXPECT_EQ(compare_modes("allreduce"), ExitCode::kSuccess);
  EXPECT_EQ(ran_.front().compress, CodecConfig());
  EXPECT_EQ(ran_.back().compress, base_.compress);
  EXPECT_THAT(out_, HasSubstr("follow the same curve without --compress: after "));
  EXPECT_THAT(out_, HasSubstr("\n--compress=int8, in all modes that have it\n"));
}

TEST_F(CompareTest, NamesModesThatLieTooFarApartAndMeasuresNothing) {
  for (const std::string seed : {"", "-seed-2", "-seed-3"}) gaps_["out/equality/ps-sync" + seed] = 0.02;
  EXPECT_EQ(compare_modes("local,ps:async"), ExitCode::kUnequal);
  EXPECT_THAT(outputs(), testing::Each(testing::StartsWith("out/equality/")));
  EXPECT_THAT(err_, HasSubstr("ps:sync does not follow the curve of local"));
  EXPECT_THAT(out_, IsEmpty());
}

TEST_F(CompareTest, ShowsTheMedianOfTheRepeats) {
  speeds_ = {{"out/local-1", 100}, {"out/ps-async-1", 150}, {"out/local-2", 102}, {"out/ps-async-2", 170}};
  EXPECT_EQ(compare_modes("local,ps:async"), ExitCode::kSuccess);
  EXPECT_THAT(out_, AllOf(HasSubstr("101 [100 .. 102]"), HasSubstr("160 [150 .. 170]")));
}

TEST_F(CompareTest, LeavesATableAndAPageBesideItsRuns) {
  EXPECT_EQ(compare_modes("allreduce,ps:async"), ExitCode::kSuccess);
  std::ifstream csv("out/comparison.csv"), page("out/comparison.html");
  std::ostringstream rows, html;
  rows << csv.rdbuf(), html << page.rdbuf();
  EXPECT_THAT(rows.str(), HasSubstr("\"ps:async\",\"ps:async\",\"\",1,1,"));
  EXPECT_THAT(html.str(), HasSubstr("<h1>softmax on digits</h1>"));
}

TEST_F(CompareTest, EndsWithTheFirstJobThatFails) {
  failures_["out/ps-async-1"].exit = ExitCode::kProcessLost;
  failures_["out/ps-async-1"].verdict = "worker 0 is gone";
  EXPECT_EQ(compare_modes("local,ps:async"), ExitCode::kProcessLost);
  EXPECT_EQ(outputs().back(), "out/ps-async-1");
  EXPECT_EQ(err_, "run_experiment: ps:async: worker 0 is gone\n");
}

}  // namespace
}  // namespace syncopate::experiments
