// run_experiment --cluster=simulated -- PROGRAM: ranks of a script in virtual time. python/tests does it with PyTorch.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/clock.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::text_of;
using testing_support::operator+;
using Flags = std::vector<std::string>;

const Flags kMeans{"--cluster=simulated", "--mode=allreduce", "--warmup-steps=1"};
const Flags kWeights{"--cluster=simulated", "--mode=ps", "--warmup-steps=1"};

class SimulatedScript : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("python3 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "python3 is not installed";
    setenv("SYNCOPATE_PACKAGE", SYNCOPATE_PACKAGE, 1);
  }
  static Flags script(Flags flags, const std::string& words) {
    flags.push_back(fmt::format("--command=python3 {} {}", SYNCOPATE_SIMULATED_SCRIPT, words));
    return flags;
  }
};

TEST_F(SimulatedScript, TrainsByMeansUntilItEnds) {
  Program run(script(kMeans + Flags{"--workers=3"}, "means 10"));
  const ProgramEnd end = run.wait();
  ASSERT_EQ(end.exit_code, 0) << end.out << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("rank 0 of 3"), HasSubstr("weight 0.00390625"))) << "4 / 2^10";
  EXPECT_THAT(end.out, Not(HasSubstr("rank 1 of 3")));
  EXPECT_THAT(text_of(run.output() / "logs/script-2.log"), HasSubstr("weight 0.00390625"));
  EXPECT_EQ(run.summary()["total_steps"], 30);
  EXPECT_EQ(run.summary()["total_samples"], 240);
  EXPECT_THAT(run.column("evals.csv", "step"), ElementsAre("5", "10"));
  EXPECT_THAT(run.column("steps.csv", "loss"), Contains("2").Times(3)) << "of the first step: 2 * 2 / 2";
}

// Rank 1 takes 2 ms for a step, which rank 0, at 1 ms, waits for.
TEST_F(SimulatedScript, TakesTheTimesThatItsRanksTake) {
  Program run(script(kMeans + Flags{"--workers=2", "--shape=100gbit"}, "means 10"));
  ASSERT_EQ(run.wait().exit_code, 0);
  const double seconds = run.summary()["training_seconds"].get<double>();
  EXPECT_GT(seconds, 0.020);
  EXPECT_LT(seconds, 0.022);
}

TEST_F(SimulatedScript, TakesTheTimeThatIsGiven) {
  Program run(script(kMeans + Flags{"--workers=2", "--shape=100gbit", "--compute=30ms"}, "means 10"));
  ASSERT_EQ(run.wait().exit_code, 0);
  EXPECT_NEAR(run.summary()["training_seconds"].get<double>(), 0.3, 0.002);
}

TEST_F(SimulatedScript, HasServersMakeTheSameUpdates) {
  Program run(script(kWeights + Flags{"--workers=2", "--servers=2", "--consistency=sync"}, "weights 10"));
  const ProgramEnd end = run.wait();
  ASSERT_EQ(end.exit_code, 0) << end.out << end.err;
  EXPECT_THAT(end.out, HasSubstr("weight 0.00390625"));
}

// Nobody waits: rank 0 is done in half of rank 1's time, and gradients of rank 1 are of older weights.
TEST_F(SimulatedScript, HasAsynchronousRanksGoOnByThemselves) {
  const Flags flags = kWeights + Flags{"--workers=2", "--servers=1", "--consistency=async", "--shape=100gbit",
                                       "--processing=update:4GB/s"};  // else measured anew by each run
  Program run(script(flags, "weights 20"));
  const ProgramEnd end = run.wait();
  ASSERT_EQ(end.exit_code, 0) << end.out << end.err;
  EXPECT_EQ(run.summary()["total_steps"], 40);
  EXPECT_GT(run.summary()["staleness_max"].get<int>(), 0);
  Program again(script(flags, "weights 20"));
  ASSERT_EQ(again.wait().exit_code, 0);
  EXPECT_EQ(text_of(run.output() / "steps.csv"), text_of(again.output() / "steps.csv")) << "the same at every call";
}

TEST_F(SimulatedScript, StopsAfterAsManyStepsAsAreAskedFor) {
  Program run(script(kMeans + Flags{"--workers=2", "--steps=4"}, "means 1000000"));
  ASSERT_EQ(run.wait().exit_code, 0);
  EXPECT_EQ(run.summary()["total_steps"], 8);
}

TEST_F(SimulatedScript, MayHaveOperationsOfAllRanksBesideItsSteps) {
  Program run(script(kMeans + Flags{"--workers=3"}, "means 5 mean -1 -1"));
  const ProgramEnd end = run.wait();
  ASSERT_EQ(end.exit_code, 0) << end.out << end.err;
  EXPECT_THAT(end.out, HasSubstr("mean 1.0"));
}

TEST_F(SimulatedScript, MayBeSlowedDown) {
  Program run(
      script(kMeans + Flags{"--workers=2", "--shape=100gbit", "--compute=10ms", "--straggler=1:3x"}, "means 10"));
  ASSERT_EQ(run.wait().exit_code, 0);
  EXPECT_NEAR(run.summary()["training_seconds"].get<double>(), 0.3, 0.002);
}

TEST_F(SimulatedScript, EndsTheRunWithTheLastWordsOfARankThatFails) {
  Program run(script(kMeans + Flags{"--workers=3"}, "means 10 fail 1 4"));
  const ProgramEnd end = run.wait();
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_THAT(end.err,
              AllOf(HasSubstr("rank 1"), HasSubstr("exit code 1"), HasSubstr("the data of this rank is gone")));
}

TEST_F(SimulatedScript, EndsTheRunWithARankThatIsKilled) {
  Program run(script(kWeights + Flags{"--workers=2", "--servers=1"}, "weights 10 die 1 4"));
  const ProgramEnd end = run.wait();
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_THAT(end.err, AllOf(HasSubstr("rank 1"), HasSubstr("signal 9")));
}

TEST_F(SimulatedScript, EndsTheRunWhereRanksMakeOtherNumbersOfSteps) {
  for (const std::string rank : {"0", "1"}) {
    Program run(script(kMeans + Flags{"--workers=2"}, "means 10 end " + rank + " 4"));
    const ProgramEnd end = run.wait();
    EXPECT_EQ(end.exit_code, 5);
    EXPECT_THAT(end.err, HasSubstr("rank " + rank + " of the script has ended after 4 steps"));
  }
}

// Asynchronous ranks need not.
TEST_F(SimulatedScript, LetsAsynchronousRanksEndWhenTheyWant) {
  Program run(script(kWeights + Flags{"--workers=2", "--servers=1", "--consistency=async"}, "weights 10 end 1 4"));
  ASSERT_EQ(run.wait().exit_code, 0);
  EXPECT_EQ(run.summary()["total_steps"], 14);
}

TEST_F(SimulatedScript, EndsTheRunWithARankThatHangs) {
  Program run(script(kMeans + Flags{"--workers=2", "--timeout=2"}, "means 10 hang 1 4"));
  const ProgramEnd end = run.wait();
  EXPECT_EQ(end.exit_code, 6);
  EXPECT_THAT(end.err, AllOf(HasSubstr("rank 1"), HasSubstr("2 s")));
}

// Not one after the other, each for the time that a wait may take.
TEST_F(SimulatedScript, EndsTheRunOnceWhereAllRanksHang) {
  Program run(script(kMeans + Flags{"--workers=8", "--compute=5ms", "--timeout=3"}, "means 10 hang all 3"));
  const TimePoint begin = SteadyClock().now();
  EXPECT_EQ(run.wait().exit_code, 6);
  EXPECT_LT(seconds(SteadyClock().now() - begin), 5 * 3);
}

TEST_F(SimulatedScript, IsNamedByADryRun) {
  Program run(script(kWeights + Flags{"--workers=2", "--dry-run"}, "weights 10"));
  const ProgramEnd end = run.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("an actor of the simulated cluster with a rank of python3 "));
}

TEST_F(SimulatedScript, NamesTheRankThatDoesNotComeToAnOperationOfAll) {
  Program run(script(kWeights + Flags{"--workers=2", "--servers=1", "--timeout=3"}, "weights 10 meet 1 4"));
  const ProgramEnd end = run.wait();
  EXPECT_EQ(end.exit_code, 6);
  EXPECT_THAT(end.err, HasSubstr("rank 1 waits in an operation of all ranks for rank 0"));
}

TEST_F(SimulatedScript, IsRefusedByItsOwnWords) {
  Program run(script(kMeans + Flags{"--workers=2"}, "means 10 refuse 0 0"));
  const ProgramEnd end = run.wait();
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("this script cannot do that"));
}

TEST_F(SimulatedScript, IsRefusedInAnotherModeThanIsAskedFor) {
  Program run(script(kWeights + Flags{"--workers=2"}, "means 10"));
  const ProgramEnd end = run.wait();
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("--mode=ps"));
}

TEST_F(SimulatedScript, MustBecomeRanks) {
  Program run(kMeans + Flags{"--workers=2", "--command=true"});
  const ProgramEnd end = run.wait();
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("its ranks did not come"));
  Program failing(kMeans + Flags{"--workers=2", "--command=false"});
  EXPECT_EQ(failing.wait().exit_code, 5);
  Program absent(kMeans + Flags{"--workers=2", "--command=no-such-program"});
  EXPECT_EQ(absent.wait().exit_code, 2);
}

TEST_F(SimulatedScript, RefusesWhatASimulatedScriptCannotHave) {
  for (const std::string flag : {"--elastic", "--compute=v100", "--epochs=2"}) {
    Program run(script(kMeans + Flags{"--workers=2", flag}, "means 10"));
    const ProgramEnd end = run.wait();
    EXPECT_EQ(end.exit_code, 2) << flag;
    EXPECT_THAT(end.err, HasSubstr(flag)) << flag;
  }
  Program run(script({"--mode=allreduce", "--workers=2", "--steps=4"}, "means 10"));
  const ProgramEnd end = run.wait();
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, AllOf(HasSubstr("--steps"), HasSubstr("--cluster=simulated")));
}

TEST_F(SimulatedScript, EndsAtCtrlCInTheMidstOfAStep) {
  Program run(script(kMeans + Flags{"--workers=2", "--timeout=60"}, "means 10 hang 1 4"));
  ASSERT_TRUE(run.wait_until(
      "rank 1 prints", [&] { return text_of(run.output() / "logs/script-1.log").find("hangs") != std::string::npos; }));
  run.signal(SIGINT);
  EXPECT_EQ(run.wait().exit_code, 130);
}

}  // namespace
}  // namespace syncopate::experiments
