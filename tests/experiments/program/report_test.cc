// `run_experiment report`: pages of finished runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::run_program;
using testing_support::TemporaryFolder;
using testing_support::text_of;
using testing_support::operator+;
using Flags = std::vector<std::string>;

const Flags kReported{"--cluster=simulated", "--compute=5ms",      "--model=mlp:784-32-10", "--train-samples=2048",
                      "--test-samples=256",  "--steps=24",         "--warmup-steps=3",      "--workers=2",
                      "--mode=ps",           "--evaluate-every=8", "--shape=1gbit+200us"};

TEST(Report, LeavesAPageOfARunInItsFolderOrWhereItIsAskedFor) {
  const TemporaryFolder folder;
  Program program(kReported);
  ASSERT_EQ(program.wait().exit_code, 0);
  const std::string run = program.output().string();
  const ProgramEnd end = run_program({"report", run});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("of ideal"), HasSubstr("page in " + run + "/report.html\n")));
  const std::string page = text_of(run + "/report.html");
  EXPECT_THAT(page, AllOf(HasSubstr("ps async, 2 workers"), HasSubstr("Quality on the test set, simulated"),
                          HasSubstr("Where the time of a step went"), HasSubstr("How stale gradients were"),
                          HasSubstr("\"row\":\"server 0\""), HasSubstr("1 Gb/s"), HasSubstr("train-samples = 2048")));
  const std::string elsewhere = folder.path() / "page.html";
  ASSERT_EQ(run_program({"report", run, "--output=" + elsewhere}).exit_code, 0);
  EXPECT_EQ(text_of(elsewhere), page);
}

TEST(Report, ComparesSeveralRunsAndWritesThePageOfAComparisonAnew) {
  const TemporaryFolder folder;
  Program first(kReported), second(kReported + Flags{"--consistency=sync"});
  ASSERT_EQ(first.wait().exit_code, 0);
  ASSERT_EQ(second.wait().exit_code, 0);
  const std::string page = folder.path() / "both.html";
  const Flags both{"report", first.output().string(), second.output().string()};
  EXPECT_THAT(run_program(both).err, HasSubstr("--output=FILE.html must say"));
  ASSERT_EQ(run_program(both + Flags{"--output=" + page}).exit_code, 0);
  EXPECT_THAT(text_of(page), AllOf(HasSubstr("ps:async"), HasSubstr("ps:sync"), HasSubstr("simulated ratio")));

  Program comparison(Flags{"compare", "--modes=ps:async,ps:sync", "--repeat=1"} +
                     Flags(kReported.begin(), kReported.begin() + 8));
  ASSERT_EQ(comparison.wait().exit_code, 0);
  const std::string compared = comparison.output().string();
  EXPECT_THAT(run_program({"report", compared}).out, HasSubstr("page in " + compared + "/comparison.html"));
}

TEST(Report, RefusesWhatIsNoFinishedRun) {
  const TemporaryFolder folder;
  const auto refusal = [](const Flags& words) {
    const ProgramEnd end = run_program(words);
    EXPECT_NE(end.exit_code, 0);
    return end.err;
  };
  EXPECT_THAT(refusal({"report"}), HasSubstr("needs the folder of a finished run"));
  EXPECT_THAT(refusal({"report", folder.path() / "nothing"}), HasSubstr("must be the folder of a finished run"));
  EXPECT_THAT(refusal({"report", folder.path()}), HasSubstr("must be the folder of a finished run"));
  EXPECT_THAT(refusal({"report", folder.path(), "--workers=3"}), HasSubstr("--workers"));
}

}  // namespace
}  // namespace syncopate::experiments
