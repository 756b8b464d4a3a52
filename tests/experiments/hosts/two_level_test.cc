// Allreduce on two levels, on hosts that are network namespaces of this machine: in shared memory inside a host, over
// sockets between hosts.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/faults/failing_run.h"
#include "tests/support/network_hosts_fixture.h"

namespace syncopate::experiments {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const Flags kTwoLevels{"--mode=allreduce", "--collective=hierarchical"};

class TwoLevels : public testing_support::NetworkNamespacesTest {
 protected:
  // Sends the signal to a worker that trains; the run's verdict then names it, and says `what` became of it.
  static void expect_verdict_of_signal(int signal, ExitCode code, const std::string& what) {
    Program program(training(kTwoLevels + Flags{"--cluster=namespaces:2x2"}));
    ASSERT_TRUE(program.wait_until_training(4));
    const pid_t victim = program.process("worker", 3);
    kill(victim, signal);
    expect_verdict(program, code, naming_at("worker 3", fmt::format("host-1, pid {}", victim)) + what);
  }
};

// In a simulated cluster the schedule sends everything over one wire. 4 workers are 2 on each host, 3 are 2 and 1.
TEST_F(TwoLevels, TrainTheWeightsOfTheScheduleOverOneWireBitForBit) {
  for (const int workers : {4, 3}) {
    const Flags job =
        kTwoLevels + Flags{"--model=mlp:784-32-10", "--batch-size=16", "--train-samples=4096",
                           "--test-samples=512",    "--epochs=1",      fmt::format("--workers={}", workers)};
    Program real(job + Flags{"--cluster=namespaces:2x2"}), simulated(job + Flags{"--cluster=simulated", "--hosts=2x2"});
    const ProgramEnd end = real.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    EXPECT_THAT(end.out, HasSubstr("on 2 namespaces, shm inside a host, sockets between hosts"));
    ASSERT_EQ(simulated.wait().exit_code, 0) << simulated.errors();
    EXPECT_THAT(real.weights(), Not(IsEmpty()));
    EXPECT_TRUE(real.weights() == simulated.weights()) << workers << " workers";
  }
}

// Six ranks are no power of two: halving-doubling folds two over the link, where a ring, too, sends more than has to
// go.
TEST_F(TwoLevels, AreWhatAutoChoosesForLongBuffersOverASlowLink) {
  Program program({"--cluster=namespaces:2x3,link:100mbit", "--mode=allreduce", "--measure-wire", "--steps=12",
                   "--model=mlp:784-256-10", "--batch-size=8", "--train-samples=1024", "--test-samples=64",
                   "--bucket-bytes=4194304"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(program.summary().dump(),
              ContainsRegex("inside a host, .* between 2 hosts of 3 workers \\(measured now\\): .*hierarchical"));
}

TEST_F(TwoLevels, NameAKilledWorkerToItsHostAndToTheOther) {
  expect_verdict_of_signal(SIGKILL, ExitCode::kProcessLost, "was killed by signal 9 \\(Killed\\)");
}

TEST_F(TwoLevels, EndTheRunInTimeWhenAWorkerIsStopped) {
  expect_verdict_of_signal(SIGSTOP, ExitCode::kTimeout, "has stopped answering");
}

// The others form groups anew on both levels: of two ranks and of one.
TEST_F(TwoLevels, GoOnWithoutAKilledWorkerAndWithItAgain) {
  Program program(training(kTwoLevels + Flags{"--elastic", "--respawn=0", "--cluster=namespaces:2x2"}));
  ASSERT_TRUE(program.wait_until_training(4));
  kill(program.process("worker", 3), SIGKILL);
  const auto steps = [&] { return std::ranges::count(program.column("steps.csv", "worker"), "3"); };
  ASSERT_TRUE(program.wait_until("worker 3 is back",
                                 [&] { return program.errors().find("worker 3 is back") != std::string::npos; }));
  ASSERT_TRUE(program.wait_until("worker 3 trains", [&, before = steps()] { return steps() > before; }));
  program.signal(SIGINT);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kInterrupted)) << end.err;
  EXPECT_THAT(end.err, ContainsRegex("worker 3 .*; 3 workers go on"));
  EXPECT_THAT(program.processes(), IsEmpty());
}

}  // namespace
}  // namespace syncopate::experiments
