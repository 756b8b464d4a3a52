// Runs that are under way: found, and asked to end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>

#include "experiments/lab/run/running_runs.h"
#include "tests/faults/failing_run.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing_support::TemporaryFolder;

// All programs of this test find each other, and no others.
class ARunUnderWay : public testing::Test {
 protected:
  void SetUp() override {
    setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
    program_.emplace(training({"--mode=allreduce", "--output=" + (folder_.path() / "first").string()}));
    ASSERT_TRUE(program_->wait_until_training(2));
  }
  void TearDown() override { unsetenv("XDG_RUNTIME_DIR"); }

  // `ps` or `stop` with its words.
  ProgramEnd ask(const Flags& words) { return Program(words).wait(); }

  TemporaryFolder folder_;
  std::optional<Program> program_;
};

TEST_F(ARunUnderWay, IsListedUntilItHasEnded) {
  const std::string pid = std::to_string(program_->pid());
  EXPECT_THAT(ask({"ps"}).out, AllOf(HasSubstr("first"), HasSubstr(pid), HasSubstr("allreduce direct, 2 workers")));
  program_->signal(SIGKILL);  // so that it cannot take itself off
  program_->wait();
  EXPECT_EQ(ask({"ps"}).out, "no run of yours is under way on this host\n");
}

TEST_F(ARunUnderWay, IsStoppedByItsNameAndKeepsWhatWasRecorded) {
  const ProgramEnd end = ask({"stop", "first"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("first has ended; what was recorded is in " + (folder_.path() / "first").string()));
  expect_verdict(*program_, ExitCode::kInterrupted, "interrupted at step [0-9]+; what was recorded is kept");
}

TEST_F(ARunUnderWay, IsStoppedByItsProcessIdToo) {
  EXPECT_EQ(ask({"stop", std::to_string(program_->pid())}).exit_code, 0);
  EXPECT_EQ(ask({"stop", (folder_.path() / "first").string()}).exit_code, 2) << "it has ended";
  EXPECT_EQ(program_->wait().exit_code, static_cast<int>(ExitCode::kInterrupted));
}

TEST_F(ARunUnderWay, ThatDoesNotEndInTimeIsSaidSo) {
  kill(program_->pid(), SIGSTOP);
  const ProgramEnd end = ask({"stop", "first", "--timeout=0.3"});
  kill(program_->pid(), SIGCONT);
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kTimeout));
  EXPECT_THAT(end.err, HasSubstr("has been asked to end, and has not within 0.3 s"));
}

TEST_F(ARunUnderWay, IsNotMistakenForAnother) {
  const ProgramEnd end = ask({"stop", "second"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("second: no run of yours that is under way is called so"));
}

// The file of a run that was killed names a process id that somebody else may have by now: here this test.
TEST(RunningRuns, DoNotSignalAProcessThatHasTheIdOfARunThatHasEnded) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / (std::to_string(getpid()) + ".json");
  std::ofstream(file) << R"({"pid":)" << getpid()
                      << R"(,"command":"run","job":"mlp","results":"/results/old","started":"once"})"
                      << "\n";
  const RunningRuns runs(folder.path());
  EXPECT_EQ(runs.stop("old", std::chrono::seconds(1)).status().code(), Code::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(RunningRuns, AreThoseWhoseProcessesHoldTheirFiles) {
  const TemporaryFolder folder;
  const RunningRuns runs(folder.path());
  {
    const auto entry =
        runs.add({.pid = getpid(), .command = "run", .job = "mlp", .results = "/results/new", .started = ""});
    ASSERT_TRUE(entry.ok()) << entry.status().message();
    ASSERT_THAT(runs.list(), SizeIs(1));
    EXPECT_EQ(runs.list().front().name(), "new");
  }
  EXPECT_THAT(runs.list(), IsEmpty());
}

TEST(RunningRuns, AreNotReadFromAFolderThatOthersMayWriteTo) {
  const TemporaryFolder folder;
  const std::string kept = folder.path() / "syncopate";
  std::filesystem::create_directory(kept);
  chmod(kept.c_str(), 0777);
  setenv("XDG_RUNTIME_DIR", folder.path().c_str(), 1);
  EXPECT_THAT(RunningRuns::of_user().status().message(), HasSubstr("yours alone"));
  unsetenv("XDG_RUNTIME_DIR");
}

}  // namespace
}  // namespace syncopate::experiments
