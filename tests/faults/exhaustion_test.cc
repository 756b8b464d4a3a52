// What runs out is named, and output that ends does not end the run.
#include "tests/faults/failing_run.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

// Through a shell, which does something first.
std::vector<std::string> in_shell(const std::string& script) { return {"/bin/bash", "-c", script, "bash"}; }

Flags short_run(const Flags& mode) { return training(mode, "--steps=50"); }

void expect_whole_results(Program& program) {
  EXPECT_THAT(program.weights(), testing::SizeIs(kParameters));
  EXPECT_EQ(program.summary().value("outcome", ""), "completed");
}

TEST(EndOfOutput, ByAClosedPipeEndsNoRun) {
  Program program(short_run({"--mode=ps", "--workers=2", "--servers=1"}),
                  in_shell("\"$@\" | head -c 1; exit ${PIPESTATUS[0]}"));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(end.err, "");
  expect_whole_results(program);
}

// The run goes on to its end, whose exit code says that a part of what it printed is missing.
TEST(EndOfOutput, ByAFullDiskIsAnExitCode) {
  Program program(short_run({"--mode=local"}), in_shell("exec \"$@\" > /dev/full 2> /dev/full"));
  EXPECT_EQ(program.wait().exit_code, 4);
  expect_whole_results(program);
}

TEST(EndOfOutput, BeforeItBeginsIsAnExitCode) {
  Program program(short_run({"--mode=local"}), in_shell("exec \"$@\" >&- 2>&-"));
  EXPECT_EQ(program.wait().exit_code, 4);
  expect_whole_results(program);
}

TEST(EndOfOutput, LeavesTheExitCodeOfAFailure) {
  Program program({"--mode=local", "--batch-size=0"}, in_shell("exec \"$@\" > /dev/full 2> /dev/full"));
  EXPECT_EQ(program.wait().exit_code, static_cast<int>(ExitCode::kUsage));
}

TEST(Exhausted, MemoryIsNamedWithItsLimit) {
  if (testing_support::kSanitized) GTEST_SKIP() << "a sanitizer takes more memory than there may be";
  // Enough for the program, and not for the weights.
  Program program({"--model=mlp:784-16384-16384-10", "--train-samples=500", "--test-samples=100", "--batch-size=8",
                   "--mode=local", "--steps=12"},
                  in_shell("ulimit -v 500000; exec \"$@\""));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kOutput)) << end.err;
  EXPECT_THAT(end.err, HasSubstr("out of memory; ulimit -v is 500000 KiB of memory: raise it"));
}

TEST(Exhausted, DescriptorsAreMissedBeforeAnythingIsLaunched) {
  Program program(short_run({"--mode=ps", "--workers=4", "--servers=2"}), in_shell("ulimit -n 40; exec \"$@\""));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kUsage));
  EXPECT_THAT(end.err, MatchesRegex("run_experiment: a process of this run may need [0-9]+ file descriptors, and may "
                                    "have 40: raise the hard limit \\(ulimit -Hn\\), or [^\n]*\n"));
}

TEST(Exhausted, SoftLimitOfDescriptorsIsRaised) {
  Program program(short_run({"--mode=ps", "--workers=4", "--servers=2"}), in_shell("ulimit -Sn 32; exec \"$@\""));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(end.err, "");
}

TEST(NamesOfFolders, ThatAreNotUtf8AreRefusedWithOneLine) {
  Program program({"--mode=local", "--output=/tmp/run-\xFF"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kUsage));
  EXPECT_THAT(end.err, MatchesRegex("run_experiment: --output=/tmp/run-.xff: is not UTF-8, [^\n]*\n"));
}

}  // namespace
}  // namespace syncopate::experiments
