// run_experiment -- PROGRAM: a program of the person's own as the worker. python/tests does the same with PyTorch.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing_support::lines_of;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::run_program;
using testing_support::TemporaryFolder;
using testing_support::text_of;
using testing_support::operator+;
using std::chrono::milliseconds;
using std::literals::chrono_literals::operator""s;
using Flags = std::vector<std::string>;

const std::string kProgram = SYNCOPATE_OWN_PROGRAM;

// With quotes in the words, as a shell would leave them.
Flags on(Flags flags, const std::string& words) {
  flags.push_back(fmt::format("--command={} {}", kProgram, words));
  return flags;
}
const Flags kTwo{"--mode=allreduce", "--workers=2"};

bool is_there(pid_t process) {
  const std::string status = text_of(fmt::format("/proc/{}/status", process));
  return !status.empty() && status.find("State:\tZ") == status.npos;
}

// The process whose number is in the file ends within a minute.
void expect_gone(const std::string& file) {
  const pid_t process = std::stoi(text_of(file));
  const TimePoint deadline = SteadyClock().now() + 60s;
  while (is_there(process) && SteadyClock().now() < deadline) std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(is_there(process));
}

TEST(OwnProgram, IsMeasuredByWhatItTells) {
  Program run(on(kTwo + Flags{"--warmup-steps=5"}, "50"));
  const ProgramEnd end = run.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("rank 0 of 2, allreduce")) << "what rank 0 prints is seen";
  EXPECT_THAT(end.out, Not(HasSubstr("rank 1 of 2"))) << "and what others do is in their logs";
  EXPECT_THAT(text_of(run.output() / "logs/worker-1.log"), HasSubstr("rank 1 of 2"));
  const nlohmann::json summary = run.summary();
  EXPECT_EQ(summary["parameters"], 1234);
  EXPECT_EQ(summary["total_steps"], 100);
  EXPECT_EQ(summary["final_test_accuracy"], 0.75);
  EXPECT_EQ(summary["final_test_loss"], 0.25);
  EXPECT_GT(summary["samples_per_second"].get<double>(), 0);
  EXPECT_LT(summary["samples_per_second"].get<double>(), 2 * 16 * 1000) << "no step is shorter than 1 ms";
  EXPECT_THAT(run.column("steps.csv", "worker"), SizeIs(100));
  EXPECT_THAT(run.column("evals.csv", "accuracy"), Contains("0.75"));
  for (const auto& entry : fs::directory_iterator(run.output() / "logs")) {
    EXPECT_NE(entry.path().extension(), ".steps") << "what has been read is not kept twice";
  }
}

TEST(OwnProgram, MayStandBehindDashesWithWordsThatAShellWouldSplit) {
  Program run(kTwo + Flags{"--", "sh", "-c", "exec \"" + kProgram + "\" 12"});
  const ProgramEnd end = run.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(run.summary()["total_steps"], 24);
}

TEST(OwnProgram, IsComparedUnderTheModesThatTellItApart) {
  Program run(
      on({"compare", "--workers=2", "--modes=local,allreduce,ps:async", "--repeat=2", "--warmup-steps=2"}, "20"));
  const ProgramEnd end = run.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("local"), HasSubstr("allreduce"), HasSubstr("ps:async")));
  EXPECT_THAT(end.out, Not(HasSubstr("rates per-sample"))) << "the rate is the program's own";
  EXPECT_THAT(run.column("comparison.csv", "learning_rate"), Each(""));
  EXPECT_TRUE(fs::exists(run.output() / "comparison.html"));
}

TEST(OwnProgram, IsNamedWithItsLastWordsWhenItFails) {
  Program run(on(kTwo, "5 fails:1"));
  const ProgramEnd end = run.wait();
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_THAT(end.err, HasSubstr("worker 1 "));
  EXPECT_THAT(end.err, HasSubstr("ValueError: the data is gone ("));
  EXPECT_THAT(run.summary()["outcome"].get<std::string>(), HasSubstr("ValueError: the data is gone"));
}

TEST(OwnProgram, IsInterruptedAndKilledIfItDoesNotEnd) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "number";
  Program run(on(kTwo, "5 hangs:" + file));
  ASSERT_TRUE(run.wait_until("it hangs", [&] { return !text_of(file).empty(); }));
  ASSERT_TRUE(run.wait_until_training(2));
  run.signal(SIGINT);
  const ProgramEnd end = run.wait();
  EXPECT_EQ(end.exit_code, 130);
  EXPECT_THAT(end.err, HasSubstr("interrupted; what was recorded is kept"));
  EXPECT_THAT(run.column("steps.csv", "worker"), SizeIs(10));
  expect_gone(file);
}

TEST(OwnProgram, IsGivenUpWhereItHangsAfterAnotherHasFailed) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "number";
  Program run(kTwo + Flags{"--timeout=1",
                           fmt::format("--command=sh -c 'test $RANK = 0 && exec {0} 5 hangs:{1}; exec {0} 5 fails:1'",
                                       kProgram, file)});
  const ProgramEnd end = run.wait();
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_THAT(end.err, HasSubstr("ValueError: the data is gone"));
  expect_gone(file);
}

TEST(OwnProgram, DiesWithItsLauncher) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "number";
  Program run(on(kTwo, "5 hangs:" + file));
  ASSERT_TRUE(run.wait_until("it hangs", [&] { return !text_of(file).empty(); }));
  run.signal(SIGKILL);
  run.wait();
  expect_gone(file);
}

TEST(OwnProgram, TakesTheChildrenAlongThatItLeaves) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "child";
  Program run(on(kTwo, "5 child:" + file));
  const ProgramEnd end = run.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  expect_gone(file);
}

// What stands for the hosts is this one: tests/experiments/hosts has more, where a network can be made.
TEST(OwnProgram, RunsBehindARemoteShell) {
  const TemporaryFolder folder;
  const fs::path shell = folder.path() / "shell";
  std::ofstream(shell) << "#!/bin/sh\necho Welcome to $1\nexec sh -c \"$2\"\n";
  fs::permissions(shell, fs::perms::owner_all);
  Program run(on(
      {"--mode=allreduce", "--hosts=node1:1,node2:1", "--remote-shell=" + shell.string(), "--listen-address=127.0.0.1"},
      "20"));
  const ProgramEnd end = run.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("Welcome to node1"));
  EXPECT_THAT(end.out, HasSubstr("rank 0 of 2, allreduce"));
  EXPECT_EQ(run.summary()["total_steps"], 40);
  EXPECT_TRUE(run.summary()["clock_uncertainty_us"].contains("worker 1"));
}

TEST(OwnProgram, MustTellOfAStep) {
  const ProgramEnd end = run_program({"--mode=allreduce", "--workers=2", "--command=true"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("true ended well, and told of no step: either its Python has no syncopate"));
}

TEST(OwnProgram, EndsAllWhereOneRefusesWhatIsAsked) {
  const ProgramEnd end = run_program(on({"--mode=ps", "--workers=2"}, "10 refuses:ps"));
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_EQ(end.err, "run_experiment: this program has never heard of ps\n");
}

TEST(OwnProgram, IsToldWhatAllRowsOfAComparisonAskSoThatTheFirstRefuses) {
  const Flags compare{"compare", "--modes=allreduce,ps:bounded:4", "--workers=2", "--repeat=1"};
  const ProgramEnd end = run_program(on(compare, "10 refuses:bounded:4"));
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("this program has never heard of bounded:4"));
  EXPECT_THAT(end.out, Not(HasSubstr("samples/s"))) << "no row has run";
}

TEST(OwnProgram, MustBeThere) {
  const ProgramEnd end = run_program({"--mode=allreduce", "--workers=2", "--command=no-such-program x"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("cannot start no-such-program: No such file or directory"));
}

}  // namespace
}  // namespace syncopate::experiments
