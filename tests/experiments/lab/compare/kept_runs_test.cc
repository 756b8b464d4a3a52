#include "experiments/lab/compare/kept_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/resolved.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing_support::Program;

// With a run that is over in no time.
class KeptRunsTest : public testing::Test {
 protected:
  KeptRunsTest() {
    Program program({"--cluster=simulated", "--compute=1ms", "--mode=local", "--model=softmax", "--steps=4",
                     "--train-samples=256", "--test-samples=64", "--warmup-steps=1", "--output=" + run_});
    EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
    Result<JobResult> result = result_by_files(run_);
    EXPECT_TRUE(result.ok()) << result.status().message();
    if (result.ok()) settings_ = result->config;
    std::ofstream(study_ + "/.comparison");
  }

  Result<std::optional<JobResult>> find(const ResolvedRun& config) {
    Result<KeptRuns> kept = KeptRuns::open(study_);
    if (!kept.ok()) return kept.status();
    return kept->find(config);
  }

  const testing_support::TemporaryFolder folder_;
  const std::string study_ = folder_.path().string();
  const std::string run_ = study_ + "/local-1";
  ResolvedRun settings_;
};

TEST_F(KeptRunsTest, AreThoseThatWereCompleted) {
  const Result<std::optional<JobResult>> found = find(settings_);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->exit, ExitCode::kSuccess);
  EXPECT_EQ((*found)->reports.size(), 1u);
  EXPECT_GT((*found)->facts.parameters, 0);
}

TEST_F(KeptRunsTest, AreNotThoseThatWereCutOff) {
  std::filesystem::remove(run_ + "/summary.json");
  const Result<std::optional<JobResult>> found = find(settings_);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_FALSE(found->has_value());
  EXPECT_FALSE(std::filesystem::exists(run_)) << "it is in the way of the one that is run now";
}

TEST_F(KeptRunsTest, AreNotThoseWhoseSummaryIsTruncated) {
  std::filesystem::resize_file(run_ + "/summary.json", 40);
  const Result<std::optional<JobResult>> found = find(settings_);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_FALSE(found->has_value());
}

// Another process writes there by then.
TEST_F(KeptRunsTest, LeaveAFolderAloneThatTheyHaveFoundToBeFree) {
  Result<KeptRuns> kept = KeptRuns::open(study_);
  ASSERT_TRUE(kept.ok());
  ResolvedRun other = settings_;
  other.output = study_ + "/local-2";
  ASSERT_FALSE(kept->find(other)->has_value());
  std::filesystem::create_directory(other.output);
  std::ofstream(other.output + "/steps.csv") << "so far";
  ASSERT_FALSE(kept->find(other)->has_value());
  EXPECT_TRUE(std::filesystem::exists(other.output + "/steps.csv"));
}

TEST_F(KeptRunsTest, RefuseARunOfOtherSettings) {
  settings_.seed += 1;
  const Status status = find(settings_).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("seed = 1, not seed = 2"));
  EXPECT_TRUE(std::filesystem::exists(run_ + "/summary.json"));
}

TEST_F(KeptRunsTest, AreOfOneProcessAtATime) {
  const Result<KeptRuns> kept = KeptRuns::open(study_);
  ASSERT_TRUE(kept.ok());
  EXPECT_THAT(KeptRuns::open(study_).status().message(), HasSubstr("another run is writing there"));
}

TEST_F(KeptRunsTest, AreNotSoughtAmongFilesOfSomethingElse) {
  std::filesystem::remove(study_ + "/.comparison");
  EXPECT_THAT(KeptRuns::open(study_).status().message(), HasSubstr("something else than a comparison"));
}

}  // namespace
}  // namespace syncopate::experiments
