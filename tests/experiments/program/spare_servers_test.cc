// --servers=colocated+K: what servers hold, what links carry, how long a step takes, and what a lost one ends.
#include "tests/faults/failing_run.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;

Flags with_spare(int workers, int spare) {
  return {"--mode=ps", "--consistency=sync", fmt::format("--workers={}", workers),
          spare > 0 ? fmt::format("--servers=colocated+{}", spare) : "--servers=colocated"};
}

Flags profile_of(int workers, int spare) {
  return with_spare(workers, spare) + Flags{"--cluster=simulated", "--model=profile:resnet50",
                                            "--compute=1ms",       "--shape=1gbit",
                                            "--steps=3",           "--warmup-steps=1"};
}

// n^2 + K (n - 2), which divides both parts.
double divisor(int n, int spare) { return n * n + spare * (n - 2.0); }

TEST(SpareServers, MakeTheUpdatesOfOthersOverEveryWire) {
  const Flags job{"--model=mlp:784-32-10", "--train-samples=2048", "--test-samples=128", "--steps=20"};
  Program others(job + Flags{"--mode=ps", "--consistency=sync", "--workers=3", "--servers=2"});
  ASSERT_EQ(others.wait().exit_code, 0) << others.errors();
  for (const std::string wire : {"shm", "ipc", "tcp", "sockets"}) {
    Program program(job + with_spare(3, 2) + Flags{"--shards-per-server=2", "--transport=" + wire});
    ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
    EXPECT_FALSE(program.weights().empty());
    EXPECT_EQ(program.weights(), others.weights()) << wire;
    const auto peaks = program.summary()["peak_memory_bytes"].get<std::map<std::string, double>>();
    EXPECT_THAT(peaks, ElementsAre(Key("evaluator"), Key("server 3"), Key("server 4"), Key("worker 0"), Key("worker 1"),
                                   Key("worker 2")));
  }
}

TEST(SpareServers, MakeTheUpdatesOfOthersUnderEveryShardingThatKeepsToParts) {
  const Flags job{"--model=mlp:784-32-10", "--train-samples=2048", "--test-samples=128", "--steps=20",
                  "--cluster=simulated",   "--compute=2ms"};
  Program others(job + Flags{"--mode=ps", "--consistency=sync", "--workers=4", "--servers=2"});
  ASSERT_EQ(others.wait().exit_code, 0) << others.errors();
  for (const std::string sharding : {"least-loaded", "whole"}) {
    Program program(job + with_spare(4, 1) + Flags{"--sharding=" + sharding, "--chunk-bytes=4096"});
    ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
    EXPECT_EQ(program.weights(), others.weights()) << sharding;
  }
  // On hosts of several workers, whose gradients are summed host by host.
  Program flat(job + Flags{"--mode=ps", "--consistency=sync", "--workers=4", "--servers=2", "--hosts=2x2"});
  ASSERT_EQ(flat.wait().exit_code, 0) << flat.errors();
  for (const std::string aggregation : {"off", "host"}) {
    Program hosts(job + with_spare(4, 1) + Flags{"--hosts=a:2,b:2,c:0", "--aggregation=" + aggregation});
    ASSERT_EQ(hosts.wait().exit_code, 0) << hosts.errors();
    EXPECT_EQ(hosts.weights(), flat.weights()) << aggregation;
  }
}

// To the alignment of each chunk; and all workers push what a server has, to the last byte.
TEST(SpareServers, HoldPartsThatFillAllLinksAlike) {
  constexpr int kSteps = 5;
  for (const auto& [n, spare] : {std::pair(2, 1), {4, 1}, {4, 3}, {8, 5}}) {
    Program program(with_spare(n, spare) + Flags{"--cluster=simulated", "--compute=2ms", "--model=mlp:784-128-10",
                                                 "--train-samples=4096", "--test-samples=128", "--chunk-bytes=4096",
                                                 fmt::format("--steps={}", kSteps), "--warmup-steps=1"});
    ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
    const nlohmann::json summary = program.summary();
    const auto bytes = summary["sharding"]["bytes"].get<std::vector<std::int64_t>>();
    const auto chunks = summary["sharding"]["chunks"].get<std::vector<int>>();
    const double all = static_cast<double>(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}));
    const int of_spare = (static_cast<int>(bytes.size()) - n) / spare;
    EXPECT_EQ(of_spare, (2 * (n - 1) + n - spare - 1) / (n - spare)) << "connections of no more bytes than others'";
    std::map<int, std::int64_t> of_servers;
    for (std::size_t shard = 0; shard < bytes.size(); ++shard) {
      const int number = static_cast<int>(shard);
      const double part = number < n ? n - spare : 2.0 * (n - 1) / of_spare;
      EXPECT_NEAR(static_cast<double>(bytes[shard]), part / divisor(n, spare) * all, 64 * chunks[shard]) << n << spare;
      of_servers[number < n ? number : n + (number - n) / of_spare] += bytes[shard];
    }
    for (const nlohmann::json& server : summary["servers"]) {
      EXPECT_EQ(server["bytes_in"].get<std::int64_t>(), kSteps * n * of_servers[server["server"].get<int>()]);
    }
  }
}

// 2n(n - 1) M / ((n^2 + K(n - 2)) B) of Jiang et al. 2020: nearly nothing is computed, and chunks are small, so that
// links are full from the first to the last.
TEST(SpareServers, TakeAsLongAsTheFormula) {
  constexpr double kLongest = 1.04, kBytes = 25557032.0 * 4, kBytesASecond = 1e9 / 8 * 1448 / 1538;
  for (const int n : {2, 4, 8}) {
    for (int spare = 0; spare < n; ++spare) {
      Program program(profile_of(n, spare) + Flags{"--network=fluid", "--chunk-bytes=32768"});
      ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
      const double formula = 1e3 * 2 * n * (n - 1) * kBytes / (divisor(n, spare) * kBytesASecond);
      const double step = program.summary()["step_ms_median"].get<double>();
      EXPECT_GT(step, formula) << n << " " << spare;
      EXPECT_LT(step, kLongest * formula) << n << " " << spare;
    }
  }
}

TEST(SpareServers, EndTheRunWhenOneIsLost) {
  Program program(training(with_spare(3, 1)));
  ASSERT_TRUE(program.wait_until_training(3));
  const pid_t victim = program.process("server", 3);
  ASSERT_NE(victim, 0);
  kill(victim, SIGKILL);
  expect_verdict(program, ExitCode::kProcessLost, naming("server 3", victim) + "was killed by signal 9 \\(Killed\\)");
}

}  // namespace
}  // namespace syncopate::experiments
