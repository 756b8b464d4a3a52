// --servers=colocated with real processes: where servers live, what a step takes behind emulated links, and what is
// said of a worker that takes its server along.
#include "common/transport/link_shape.h"
#include "tests/faults/failing_run.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;

Flags colocated(int workers) {
  return {"--mode=ps", "--consistency=sync", "--servers=colocated", fmt::format("--workers={}", workers)};
}

TEST(ColocatedServers, AreInTheProcessesOfTheirWorkers) {
  Program program(training(colocated(3)));
  ASSERT_TRUE(program.wait_until_training(3));
  EXPECT_EQ(program.processes().size(), 4u) << "three workers and the evaluator";
  program.signal(SIGINT);
  program.wait();
  EXPECT_THAT(program.processes(), IsEmpty());
}

TEST(ColocatedServers, MakeTheUpdatesOfOthersOverEveryWire) {
  const Flags job{"--model=mlp:784-32-10", "--train-samples=2048", "--test-samples=128", "--steps=20", "--mode=ps",
                  "--consistency=sync",    "--workers=3"};
  Program others(job + Flags{"--servers=2"});
  ASSERT_EQ(others.wait().exit_code, 0) << others.errors();
  for (const std::string wire : {"shm", "ipc", "tcp", "sockets"}) {
    Program program(job + Flags{"--servers=colocated", "--shards-per-server=2", "--transport=" + wire});
    ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
    EXPECT_FALSE(program.weights().empty());
    EXPECT_EQ(program.weights(), others.weights()) << wire;
    const auto peaks = program.summary()["peak_memory_bytes"].get<std::map<std::string, double>>();
    EXPECT_THAT(peaks, ElementsAre(Key("evaluator"), Key("worker 0"), Key("worker 1"), Key("worker 2")));
  }
}

// 2 (n - 1) M / (n B) of Jiang et al. 2020. Chunks are small, so that pushes and answers pass the one link of a process
// at the same time. A busy machine makes steps longer and never shorter: the shortest of a few runs counts.
TEST(ColocatedServers, TakeAsLongAsTheFormulaBehindEmulatedLinks) {
  constexpr double kLongest = 1.25;
  constexpr int kMostRuns = 4;
  const LinkShape link = *LinkShape::parse("20mbit");
  for (const int workers : {2, 4}) {
    const double bytes = 4.0 * static_cast<double>(kParameters) * 2 * (workers - 1) / workers;
    const double formula = 1e3 * bytes / link.payload_bytes_per_second();
    double fastest = 1e9;
    for (int run = 0; run < kMostRuns && fastest > kLongest * formula; ++run) {
      Program program(training(colocated(workers) + Flags{"--shape=20mbit", "--chunk-bytes=4096", "--warmup-steps=2"},
                               "--steps=10"));
      ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
      fastest = std::min(fastest, program.summary()["step_split_ms"]["step"].get<double>());
    }
    EXPECT_GT(fastest, 0.98 * formula) << workers;
    EXPECT_LT(fastest, kLongest * formula) << workers;
  }
}

class LossOfAColocatedWorker : public testing::Test {
 protected:
  void lose_by(int signal) {
    victim_ = program_.process("worker", 1);
    ASSERT_NE(victim_, 0);
    ASSERT_TRUE(program_.wait_until_training(3));
    kill(victim_, signal);
  }

  Program program_{training(colocated(3))};
  pid_t victim_ = 0;
};

TEST_F(LossOfAColocatedWorker, ByKillEndsTheRunWhichSaysThatItsServerIsLost) {
  ASSERT_NO_FATAL_FAILURE(lose_by(SIGKILL));
  expect_verdict(program_, ExitCode::kProcessLost,
                 naming("worker 1, with server 1 in its process", victim_) +
                     "was killed by signal 9 \\(Killed\\); what its server held is gone with it");
}

TEST_F(LossOfAColocatedWorker, BySilenceEndsTheRunAndNamesTheProcess) {
  ASSERT_NO_FATAL_FAILURE(lose_by(SIGSTOP));
  expect_verdict(program_, ExitCode::kTimeout,
                 naming("server 1 in the process of worker 1", victim_) + "has stopped answering");
}

}  // namespace
}  // namespace syncopate::experiments
