// Parameter servers that take one push a host, on hosts that are network namespaces of this machine.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "experiments/checkpoint/checkpoint_store.h"
#include "tests/faults/failing_run.h"
#include "tests/support/network_hosts_fixture.h"

namespace syncopate::experiments {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const Flags kSync{"--mode=ps", "--consistency=sync", "--servers=2"};
const Flags kAggregated = kSync + Flags{"--aggregation=host"};
constexpr const char* kNeedsEveryWorker = "; this mode needs every worker";

class Aggregation : public testing_support::NetworkNamespacesTest {
 protected:
  // The bytes that servers have received and sent.
  static double bytes_of_servers(const Program& program) {
    double bytes = 0;
    const nlohmann::json summary = program.summary();
    for (const nlohmann::json& server : summary["servers"]) {
      bytes += server["bytes_in"].get<double>() + server["bytes_out"].get<double>();
    }
    return bytes;
  }

  // Kills a worker of the second host, whose lowest is worker 2, while it trains.
  static void expect_verdict_of_kill(int worker) {
    Program program(training(kAggregated + Flags{"--cluster=namespaces:2x2"}));
    ASSERT_TRUE(program.wait_until_training(4));
    const pid_t victim = program.process("worker", worker);
    kill(victim, SIGKILL);
    expect_verdict(program, ExitCode::kProcessLost,
                   naming_at(fmt::format("worker {}", worker), fmt::format("host-1, pid {}", victim)) +
                       "was killed by signal 9 \\(Killed\\)" + kNeedsEveryWorker);
  }
};

Flags small_job(int workers) {
  return {"--model=mlp:784-32-10", "--batch-size=16", "--train-samples=4096",
          "--test-samples=512",    "--epochs=1",      fmt::format("--workers={}", workers)};
}

// 8 workers are 4 on each host, 5 are 4 and 1. A simulated cluster sums by the same hosts.
TEST_F(Aggregation, TrainsTheWeightsOfAPushOfEachWorkerBitForBitWithFewerBytes) {
  for (const int workers : {8, 5}) {
    const Flags where{"--cluster=namespaces:2x4"};
    Program flat(small_job(workers) + kSync + where);
    const ProgramEnd flat_end = flat.wait();
    ASSERT_EQ(flat_end.exit_code, 0) << flat_end.err;
    Program aggregated(small_job(workers) + kAggregated + where);
    const ProgramEnd end = aggregated.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err << testing_support::text_of(aggregated.output() / "logs/worker-1.log");
    EXPECT_THAT(end.err, IsEmpty());
    EXPECT_THAT(end.out, HasSubstr(fmt::format("ps sync, {} workers, 2 servers on 2 namespaces, shm inside a host, tcp "
                                               "to servers",
                                               workers)));
    EXPECT_THAT(flat.weights(), Not(IsEmpty()));
    EXPECT_TRUE(flat.weights() == aggregated.weights()) << workers << " workers";
    Program simulated(small_job(workers) + kSync + Flags{"--cluster=simulated", "--hosts=2x4"});
    ASSERT_EQ(simulated.wait().exit_code, 0) << simulated.errors();
    EXPECT_TRUE(flat.weights() == simulated.weights()) << workers << " workers";
    EXPECT_NEAR(bytes_of_servers(flat) / bytes_of_servers(aggregated), workers / 2.0, 0.01 * workers);
    EXPECT_EQ(flat.summary()["total_steps"], aggregated.summary()["total_steps"]);
  }
}

TEST_F(Aggregation, NamesAKilledWorkerThatPushesForItsHost) { expect_verdict_of_kill(2); }

TEST_F(Aggregation, NamesAKilledWorkerThatDoesNotPush) { expect_verdict_of_kill(3); }

TEST_F(Aggregation, EndsTheRunInTimeWhenAWorkerIsStopped) {
  Program program(training(kAggregated + Flags{"--cluster=namespaces:2x2"}));
  ASSERT_TRUE(program.wait_until_training(4));
  const pid_t victim = program.process("worker", 3);
  kill(victim, SIGSTOP);
  expect_verdict(program, ExitCode::kTimeout,
                 naming_at("worker 3", fmt::format("host-1, pid {}", victim)) + "has stopped answering");
}

// A run that goes on from a checkpoint, flat or not, comes to the weights of an unbroken one.
TEST_F(Aggregation, GoesOnFromACheckpoint) {
  const testing_support::TemporaryFolder folder;
  const auto job = [&](const std::string& name, int steps) {
    return Flags{"--model=mlp:784-32-10",    "--batch-size=16",
                 "--train-samples=4096",     "--test-samples=512",
                 "--warmup-steps=2",         fmt::format("--steps={}", steps),
                 "--cluster=namespaces:2x2", "--output=" + (folder.path() / name).string()};
  };
  Program whole(job("whole", 40) + kAggregated);
  ASSERT_EQ(whole.wait().exit_code, 0) << whole.errors();
  Program first(job("first", 20) + kAggregated + Flags{"--checkpoint-every=20"});
  ASSERT_EQ(first.wait().exit_code, 0) << first.errors();
  const std::string resume = "--resume=" + (folder.path() / "first").string();
  for (const Flags& mode : {kAggregated, kSync}) {
    Program rest(job(fmt::format("rest-{}", mode.size()), 40) + mode + Flags{resume});
    ASSERT_EQ(rest.wait().exit_code, 0) << rest.errors();
    EXPECT_TRUE(rest.weights() == whole.weights()) << mode.back();
  }
}

// All connect anew, inside hosts too.
TEST_F(Aggregation, GoesBackToACheckpointWhenAServerIsLost) {
  Program program(training(kAggregated + Flags{"--checkpoint-every=20", "--cluster=namespaces:2x2"}));
  ASSERT_TRUE(program.wait_until_training(4));
  ASSERT_TRUE(program.wait_until("there is a checkpoint", [&] {
    return !CheckpointStore((program.output() / "checkpoints").string()).steps().empty();
  }));
  kill(program.process("server", 1), SIGKILL);
  ASSERT_TRUE(program.wait_until("the server is back",
                                 [&] { return program.errors().find("all go back to ") != std::string::npos; }));
  const auto steps = [&] { return std::ranges::count(program.column("steps.csv", "worker"), "3"); };
  ASSERT_TRUE(program.wait_until("worker 3 trains on", [&, before = steps()] { return steps() > before + 20; }));
  program.signal(SIGINT);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kInterrupted)) << end.err;
  EXPECT_THAT(program.processes(), IsEmpty());
}

}  // namespace
}  // namespace syncopate::experiments
