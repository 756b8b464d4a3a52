// Meetings that end without all workers, in whole runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace syncopate::testing_support {
namespace {

using testing::HasSubstr;
using Flags = std::vector<std::string>;

const Flags kQuorumJob{"--mode=ps",      "--consistency=local-sgd:5", "--workers=4",
                       "--servers=2",    "--train-samples=8192",      "--test-samples=256",
                       "--batch-size=32"};
const Flags kWithoutProcesses{"--cluster=simulated", "--compute=20ms", "--steps=40"};

// When worker 0 made its last step.
double end_of_worker_0(const Program& program) {
  const std::vector<std::string> workers = program.column("steps.csv", "worker"),
                                 ends = program.column("steps.csv", "end_s");
  double last = 0;
  for (std::size_t row = 0; row < ends.size(); ++row) {
    if (workers[row] == "0") last = std::max(last, std::stod(ends[row]));
  }
  return last;
}

TEST(Quorum, LetsWorkersGoOnWithoutASlowOneThatStillCounts) {
  const Flags slow = kQuorumJob + kWithoutProcesses + Flags{"--straggler=1:3x"};
  Program all(slow), quorum(slow + Flags{"--quorum=3"});
  for (Program* program : {&all, &quorum}) {
    const ProgramEnd end = program->wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    EXPECT_EQ(program->summary()["total_steps"], 4 * 40) << "the slow one makes all of its steps, too";
    EXPECT_EQ(program->summary()["dropped"], 0);
  }
  EXPECT_NEAR(end_of_worker_0(all) / end_of_worker_0(quorum), 3, 0.3);
  EXPECT_GT(quorum.summary()["final_test_accuracy"], 0.3);
}

// The fast ones are a few milliseconds apart, and wait for each other, but not for the slow one.
TEST(Quorum, WaitsForThoseWhoComeWithinTheGrace) {
  const Flags uneven = kQuorumJob + kWithoutProcesses + Flags{"--straggler=0:1.1x,1:3x"};
  Program without(uneven + Flags{"--quorum=2"}), with(uneven + Flags{"--quorum=2+30ms"});
  ASSERT_EQ(without.wait().exit_code, 0) << without.errors();
  ASSERT_EQ(with.wait().exit_code, 0) << with.errors();
  const auto staleness = [](const Program& program) { return program.summary()["staleness_mean"].get<double>(); };
  EXPECT_LT(staleness(with), staleness(without));
}

TEST(Quorum, OfRealProcessesGoesOnWhereAWorkerIsKilledAndComesBack) {
  Program program(kQuorumJob +
                  Flags{"--steps=200", "--quorum=2+5ms", "--respawn=100ms", "--fault=kill:worker1@step60"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out + end.err, HasSubstr("worker 1 is back"));
  EXPECT_GT(program.summary()["final_test_accuracy"], 0.3);
}

TEST(Quorum, IsRefusedWhereItCannotBe) {
  const auto refusal = [](const Flags& flags) { return run_program(kQuorumJob + flags).err; };
  EXPECT_THAT(refusal({"--quorum=5"}), HasSubstr("--quorum=5: must be 1 to 4, the workers"));
  EXPECT_THAT(refusal({"--quorum=2", "--replicas=1"}), HasSubstr("--quorum=2: a server and its standby"));
  EXPECT_THAT(refusal({"--quorum=2+1s", "--checkpoint-every=20"}),
              HasSubstr("--quorum=2+1s: workers are at different meetings"));
  EXPECT_THAT(refusal({"--quorum=0"}), HasSubstr("--quorum=0: quorum must be K or K+TIME"));
}

}  // namespace
}  // namespace syncopate::testing_support
