#include "experiments/lab/convergence/convergence_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "experiments/config/resolution.h"
#include "experiments/lab/convergence/convergence_plan.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST(ConvergenceLine, TakesTwoFoldersAndNothingElse) {
  const Result<ConvergenceRequest> request =
      parse_convergence_line({"reproduce", "convergence", "--output=out", "--data-dir=sets"});
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->output, "out");
  EXPECT_EQ(request->data_dir, "sets");
  EXPECT_EQ(parse_convergence_line({"reproduce", "convergence"})->data_dir, "data");
  EXPECT_THAT(parse_convergence_line({"reproduce", "convergence", "ring"}).status().message(),
              HasSubstr("takes no other name"));
  EXPECT_THAT(parse_convergence_line({"reproduce", "convergence", "--seed=3"}).status().message(), HasSubstr("--seed"));
}

// Jobs that end as a test says instead of running.
class ConvergenceRunTest : public testing::Test {
 protected:
  ConvergenceRuns runs() {
    return {.resolver = [](const RunRequest& request) { return resolve(request, {}, ""); },
            .runner =
                [this](const ResolvedRun& config) {
                  ran_.push_back(config);
                  JobResult result = result_;
                  for (int seed = 0; seed < config.repeat; ++seed) {
                    RunReport report;
                    report.final_test_accuracy = 0.5 + 0.1 * seed;
                    report.staleness_mean = seed;
                    result.reports.push_back(report);
                  }
                  return result;
                },
            .data_dir = "sets",
            .folder = "runs"};
  }

  JobResult result_;
  std::vector<ResolvedRun> ran_;
};

TEST_F(ConvergenceRunTest, RunsEachSettingOnceWithAllSeedsInAFolderOfItsOwn) {
  FailedRun failed;
  const ReproducedConvergence reproduced = run_settings(softsync_claim(), runs(), failed);
  EXPECT_EQ(failed.exit, ExitCode::kSuccess);
  ASSERT_THAT(ran_, SizeIs(reproduced.table.settings.size()));
  ASSERT_THAT(reproduced.measured, SizeIs(ran_.size()));
  std::set<std::string> folders;
  for (const ResolvedRun& run : ran_) {
    EXPECT_EQ(run.repeat, kConvergenceSeeds);
    EXPECT_EQ(run.data_dir, "sets");
    EXPECT_TRUE(run.output.starts_with("runs/")) << run.output;
    folders.insert(run.output);
  }
  EXPECT_THAT(folders, SizeIs(ran_.size()));
  EXPECT_THAT(reproduced.measured.back().accuracies, testing::ElementsAre(0.5, 0.6, 0.7));
  EXPECT_DOUBLE_EQ(reproduced.measured.back().staleness, 1);
}

TEST_F(ConvergenceRunTest, EndsWithTheFirstRunThatFailsAndNamesItsSetting) {
  result_.exit = ExitCode::kData;
  result_.verdict = "a file is truncated";
  FailedRun failed;
  run_settings(softsync_claim(), runs(), failed);
  EXPECT_THAT(ran_, SizeIs(1));
  EXPECT_EQ(failed.exit, ExitCode::kData);
  EXPECT_EQ(failed.verdict, "sync: a file is truncated");
}

// The claims themselves, with one seed: what collapses, what learns, and what the rate over the staleness cures.
class ConvergenceClaims : public testing::Test {
 protected:
  static Convergence kind(const ConvergenceTable& table, const std::string& name, double reference) {
    return convergence_of(accuracy(table, name), reference);
  }
  static double accuracy(const ConvergenceTable& table, const std::string& name) {
    const auto setting = std::ranges::find(table.settings, name, &ConvergenceSetting::name);
    EXPECT_NE(setting, table.settings.end()) << name;
    testing_support::Program program(setting->flags);
    EXPECT_EQ(program.wait().exit_code, 0) << name << ": " << program.errors();
    return program.summary()["final_test_accuracy"].get<double>();
  }
};

TEST_F(ConvergenceClaims, HoldOfSoftsync) {
  const ConvergenceTable table = softsync_claim();
  const double sync = accuracy(table, "sync");
  EXPECT_GT(sync, 0.8);
  EXPECT_EQ(kind(table, "softsync:30, base rate", sync), Convergence::kCollapses);
  EXPECT_EQ(kind(table, "softsync:30, rate / staleness", sync), Convergence::kLearns);
}

TEST_F(ConvergenceClaims, HoldOfLabels) {
  const ConvergenceTable table = labels_claim(LabelsData::kDigits);
  const double sync = accuracy(table, "sync, random, 10 workers");
  EXPECT_GT(sync, 0.8);
  EXPECT_EQ(kind(table, "sync, labels, 10 workers", sync), Convergence::kLearns);
  EXPECT_EQ(kind(table, "async, random, 10 workers", sync), Convergence::kLearns);
  EXPECT_NE(kind(table, "async, labels, 10 workers", sync), Convergence::kLearns);
}

}  // namespace
}  // namespace syncopate::experiments
