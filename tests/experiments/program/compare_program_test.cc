// compare as a person uses it: real processes, real results.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "experiments/cluster/exit_code.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::text_of;

using Flags = std::vector<std::string>;

// A comparison of jobs of a second.
Flags small_comparison(const Flags& more) {
  Flags flags{
      "compare",          "--model=mlp:784-32-10", "--batch-size=16", "--train-samples=4096", "--test-samples=512",
      "--warmup-steps=10"};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

TEST(CompareProgram, ChecksEqualityThenPrintsModesSideBySide) {
  Program program(small_comparison({"--modes=local,allreduce,ps:async", "--steps=90", "--repeat=1"}));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("equality: "));
  for (const char* mode : {"local", "allreduce", "ps:async"}) {
    EXPECT_THAT(end.out,
                ContainsRegex(fmt::format(
                    "\nround 1/1, run [1-3]/3: {} +ETA [^\n]*(\n    )?[^\n]* samples/s  accuracy 0\\.", mode)));
    EXPECT_THAT(end.out, ContainsRegex(fmt::format("\n{} ", mode)));
  }
  EXPECT_THAT(end.err, IsEmpty());
  EXPECT_THAT(text_of(program.output() / "ps-async-1/config.toml"), HasSubstr("learning-rate = 0.0005 "));
  EXPECT_THAT(text_of(program.output() / "allreduce-1/config.toml"), HasSubstr("learning-rate = 0.001 "));
}

TEST(CompareProgram, KeepsTheFinishedRunsWhenItIsInterrupted) {
  Program program(small_comparison({"--modes=allreduce,ps:sync", "--steps=200", "--repeat=100"}));
  ASSERT_TRUE(program.wait_until("a round has ended",
                                 [&] { return std::filesystem::exists(program.output() / "comparison.csv"); }));
  program.signal(SIGINT);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kInterrupted));
  EXPECT_THAT(end.out, ContainsRegex("\nallreduce "));
  EXPECT_THAT(end.out, HasSubstr("results in "));
  EXPECT_THAT(text_of(program.output() / "comparison.csv"), HasSubstr("ps:sync"));
  EXPECT_THAT(text_of(program.output() / "comparison.html"), HasSubstr("allreduce"));
  EXPECT_THAT(program.processes(), IsEmpty());
}

// sgd at these rates learns nothing, well, or not at all.
TEST(CompareProgram, MeasuresWithTheBestOfTheRatesThatItHasTried) {
  Program program(small_comparison(
      {"--modes=ps:async", "--optimizer=sgd", "--steps=120", "--tune-rate=0.00001,0.2,1000", "--repeat=1"}));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("ps:async: learning rate 0.1 was best of 5e-06 to 500\n"));
  EXPECT_THAT(text_of(program.output() / "ps-async-1/config.toml"), HasSubstr("learning-rate = 0.1 "));
}

TEST(CompareProgram, ShowsItsRowsAndRatesWithoutRunningThem) {
  Program program(
      small_comparison({"--modes=allreduce,ps:async", "--workers=4", "--vary=shape=none,1gbit", "--dry-run"}));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, ContainsRegex("\nps:async shape=none +0\\.00025 +16 "));
  EXPECT_THAT(end.out, HasSubstr("1 round of 4 runs each"));
  EXPECT_FALSE(std::filesystem::exists(program.output()));
}

TEST(CompareProgram, RefusesInADryRunWhatItsRunsWouldRefuse) {
  Program wrong({"compare", "--modes=ps:sync", "--model=mlp:100-10", "--dry-run"});
  const ProgramEnd end = wrong.wait();
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kUsage));
  EXPECT_THAT(end.err, HasSubstr("run_experiment: ps:sync: "));
  const testing_support::TemporaryFolder empty;
  Program without_data(
      {"compare", "--modes=ps:sync", "--dataset=mnist", "--dry-run", "--data-dir=" + empty.path().string()});
  EXPECT_THAT(without_data.wait().out, HasSubstr("as things are, the run would end with exit code 3: "));
}

TEST(CompareProgram, ComparesFinishedRuns) {
  Program first(
      {"--mode=allreduce", "--model=mlp:784-32-10", "--train-samples=4096", "--test-samples=512", "--epochs=2"});
  ASSERT_EQ(first.wait().exit_code, 0);
  Program second(
      {"--mode=ps", "--model=mlp:784-32-10", "--train-samples=4096", "--test-samples=512", "--epochs=2", "--repeat=2"});
  ASSERT_EQ(second.wait().exit_code, 0);
  const testing_support::TemporaryFolder folder;
  const std::string table = folder.path() / "table";
  // Without the flags of a run that Program adds.
  Program compared({first.output(), second.output(), table},
                   {"/bin/sh", "-c", "exec \"$0\" compare \"$1\" \"$2\" --output=\"$3\""});
  const ProgramEnd end = compared.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, ContainsRegex("\nps:async "));
  EXPECT_THAT(text_of(table + "/comparison.csv"), HasSubstr("ps:async"));
}

// The data stays, and all else is drawn anew: the second repeat is a run of the next seed.
TEST(Repeats, HaveSeedsOfTheirOwn) {
  const Flags flags{"--mode=local", "--model=mlp:784-32-10", "--train-samples=4096", "--test-samples=512",
                    "--epochs=1"};
  const auto losses = [&](Flags more) {
    more.insert(more.begin(), flags.begin(), flags.end());
    Program program(more);
    EXPECT_EQ(program.wait().exit_code, 0);
    std::vector<double> found;
    const nlohmann::json summary = program.summary();
    for (const nlohmann::json& repeat : summary["each_repeat"]) found.push_back(repeat["final_test_loss"]);
    return found;
  };
  const std::vector<double> both = losses({"--seed=5", "--repeat=2"});
  EXPECT_EQ(both, (std::vector{losses({"--seed=5"}).at(0), losses({"--seed=6"}).at(0)}));
  EXPECT_NE(both[0], both[1]);
  EXPECT_NE(losses({"--seed=5", "--data-seed=2"}).at(0), both[0]);
}

}  // namespace
}  // namespace syncopate::experiments
