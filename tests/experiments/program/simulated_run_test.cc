// Runs on the simulated cluster, beside the same runs on real processes.
#include <fmt/format.h>
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

const Flags kSmall{"--steps=12",      "--train-samples=2048", "--test-samples=256",
                   "--batch-size=32", "--timeout=60",         "--transport=sockets"};
const Flags kSimulated{"--cluster=simulated", "--compute=2ms"};

// The flags of a small run, without a transport where there is none.
Flags small(const Flags& flags) {
  Flags all = kSmall + flags;
  if (flags.front() == "--mode=local") std::erase(all, "--transport=sockets");
  return all;
}

struct Case {
  std::string name;
  Flags flags;
};

std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.name; }

class SimulatedIsReal : public testing::TestWithParam<Case> {};

TEST_P(SimulatedIsReal, BitByBitInItsWeights) {
  Program real(small(GetParam().flags)), simulated(small(GetParam().flags) + kSimulated);
  ASSERT_EQ(real.wait().exit_code, 0) << real.errors();
  ASSERT_EQ(simulated.wait().exit_code, 0) << simulated.errors();
  EXPECT_FALSE(real.weights().empty());
  EXPECT_EQ(real.weights(), simulated.weights());
}

INSTANTIATE_TEST_SUITE_P(
    Of, SimulatedIsReal,
    testing::Values(
        Case{"Local", {"--mode=local"}},
        Case{"PsSync", {"--mode=ps", "--consistency=sync", "--workers=3", "--servers=2"}},
        Case{"PsSyncColocated", {"--mode=ps", "--consistency=sync", "--workers=3", "--servers=colocated"}},
        Case{"PsSyncWithSpareServers", {"--mode=ps", "--consistency=sync", "--workers=3", "--servers=colocated+2"}},
        Case{"PsSyncOfTensors", {"--mode=ps", "--consistency=sync", "--workers=2", "--servers=2", "--sharding=tensor"}},
        Case{"PsSyncOfWholeTensors",
             {"--mode=ps", "--consistency=sync", "--workers=2", "--servers=2", "--sharding=whole"}},
        Case{"PsSyncCompressed",
             {"--mode=ps", "--consistency=sync", "--workers=2", "--servers=2", "--compress=topk:0.05"}},
        Case{"PsSyncLenet", {"--mode=ps", "--consistency=sync", "--workers=2", "--model=lenet"}},
        Case{"PsSyncOfLabels", {"--mode=ps", "--consistency=sync", "--workers=3", "--servers=2", "--shard=labels"}},
        Case{"RingOfLabels", {"--mode=allreduce", "--collective=ring", "--workers=4", "--shard=labels"}},
        Case{"Ring", {"--mode=allreduce", "--collective=ring", "--workers=4"}},
        Case{"RingWithoutOverlap", {"--mode=allreduce", "--collective=ring", "--workers=2", "--overlap=off"}},
        Case{"RingCompressed", {"--mode=allreduce", "--collective=ring", "--workers=3", "--compress=int8"}},
        Case{"ShardedState", {"--mode=sharded", "--workers=4"}},
        Case{"ShardedGradients", {"--mode=sharded", "--workers=3", "--stage=2", "--collective=direct"}},
        Case{"ShardedWeights", {"--mode=sharded", "--workers=3", "--stage=3", "--collective=ring"}},
        Case{"Tree", {"--mode=allreduce", "--collective=tree", "--workers=3"}},
        Case{"HalvingDoubling", {"--mode=allreduce", "--collective=halving-doubling", "--workers=4"}},
        Case{"Averaging", {"--mode=allreduce", "--collective=ring", "--workers=4", "--sync-every=4"}},
        Case{"TablesOfARecommender",
             {"--mode=ps", "--consistency=sync", "--workers=2", "--servers=2", "--model=ncf", "--dataset=zipf-ratings",
              "--table-rows=500"}},
        Case{"TablesOfARecommenderBesideARing",
             {"--mode=hybrid", "--collective=ring", "--workers=3", "--servers=2", "--model=ncf",
              "--dataset=zipf-ratings", "--table-rows=500"}},
        Case{"Gossip", {"--mode=allreduce", "--collective=ring", "--workers=4", "--gossip"}}),
    [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

// Times as well as weights: what steps.csv has of every step of every worker.
TEST(SimulatedRun, WaitsForAsLongAsTheWeightsOfAllWorkersTakeOverOneLink) {
  const Flags many = Flags{"--mode=ps",     "--consistency=async", "--workers=16",       "--cluster=simulated",
                           "--compute=2ms", "--shape=1mbit+1ms",   "--test-samples=256", "--steps=1"};
  Program usual(many), asked(many + Flags{"--timeout=20"});
  const ProgramEnd end = usual.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, testing::ContainsRegex("timeout +[^\n]*: a real run needs --timeout=[0-9]{3}"));
  EXPECT_NE(asked.wait().exit_code, 0);
}

// The hosts of a simulated cluster sum as those of namespaces do (tests/experiments/hosts/aggregation_test.cc).
TEST(SimulatedRun, TrainsTheWeightsOfAPushOfEachWorkerWithOneOfEachHost) {
  for (const std::string workers : {"--workers=8", "--workers=5"}) {
    const Flags flags = small({"--mode=ps", "--consistency=sync", "--hosts=2x4", workers}) + kSimulated;
    Program flat(flags + Flags{"--servers=2"}), aggregated(flags + Flags{"--servers=2", "--aggregation=host"});
    Program colocated(flags + Flags{"--servers=colocated", "--aggregation=host"});
    for (Program* const program : {&flat, &aggregated, &colocated}) {
      ASSERT_EQ(program->wait().exit_code, 0) << program->errors();
      EXPECT_FALSE(program->weights().empty());
      EXPECT_EQ(program->weights(), flat.weights()) << workers;
    }
  }
}

TEST(SimulatedRun, RepeatsExactlyWhereNobodyWaits) {
  const Flags flags =
      small({"--mode=ps", "--consistency=async", "--workers=4", "--servers=2", "--straggler=1:2x"}) + kSimulated;
  Program first(flags), second(flags);
  ASSERT_EQ(first.wait().exit_code, 0) << first.errors();
  ASSERT_EQ(second.wait().exit_code, 0) << second.errors();
  EXPECT_FALSE(first.steps_csv().empty());
  EXPECT_EQ(first.steps_csv(), second.steps_csv());
  EXPECT_EQ(first.weights(), second.weights());
}

// 2 (n - 1) M / (n B) of Jiang et al. 2020: nearly nothing is computed, and a part of 1 / n stays in each process.
TEST(SimulatedRun, TakesAsLongAsTheFormulaOfColocatedServers) {
  constexpr double kBytes = 25557032.0 * 4, kBytesASecond = 1e9 / 8 * 1448 / 1538;
  for (const int workers : {2, 4, 8, 16}) {
    Program program({"--cluster=simulated", "--mode=ps", "--consistency=sync", "--model=profile:resnet50",
                     fmt::format("--workers={}", workers), "--servers=colocated", "--compute=1ms", "--shape=1gbit",
                     "--steps=3", "--warmup-steps=1"});
    ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
    const double formula = 1e3 * 2 * (workers - 1) * kBytes / (workers * kBytesASecond);
    const double step = program.summary()["step_ms_median"].get<double>();
    EXPECT_GT(step, formula) << workers;
    EXPECT_LT(step, 1.02 * formula) << workers;
  }
}

TEST(SimulatedRun, StopsAServerWithTheWorkerWhoseProcessItIsIn) {
  const auto longest_wait_ms = [](const std::string& servers) {
    Program program(small({"--mode=ps", "--workers=3", servers, "--fault=stop:worker1@step5+500ms"}) + kSimulated);
    EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
    double longest = 0;
    const std::vector<std::string> workers = program.column("steps.csv", "worker"),
                                   waits = program.column("steps.csv", "exposed_wait_us");
    for (std::size_t i = 0; i < waits.size(); ++i) {
      if (workers[i] == "0") longest = std::max(longest, std::stod(waits[i]) / 1e3);
    }
    return longest;
  };
  EXPECT_GT(longest_wait_ms("--servers=colocated"), 400);
  EXPECT_LT(longest_wait_ms("--servers=3"), 100);
}

// Its fc6 is 411 MB, which one server sends to each worker and receives from each in every step.
TEST(SimulatedRun, WaitsForTheServerThatHasAProfilesLargestTensorWhole) {
  const auto step_ms = [](const std::string& sharding) {
    Program program({"--cluster=simulated", "--mode=ps", "--consistency=sync", "--model=profile:vgg16", "--workers=4",
                     "--servers=4", "--compute=100ms", "--shape=25gbit", "--network=fifo", "--steps=3",
                     "--warmup-steps=1", "--sharding=" + sharding});
    EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
    return program.summary()["step_ms_median"].get<double>();
  };
  constexpr double kFc6Bytes = 102760448.0 * 4, kBytesAMillisecond = 25e9 / 8 / 1000;
  const double way = 4 * kFc6Bytes / kBytesAMillisecond;  // of all workers' gradients, or weights
  EXPECT_GT(step_ms("whole"), way);
  EXPECT_LT(step_ms("balanced"), way);
}

TEST(SimulatedRun, TakesTheTypicalStepOfAKnownDeviceAndSaysWhose) {
  const Flags job{"--cluster=simulated", "--mode=local", "--batch-size=64", "--steps=3", "--warmup-steps=1"};
  Program program(job + Flags{"--model=profile:resnet50", "--compute=p100"});
  ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
  EXPECT_NEAR(program.summary()["step_ms_median"].get<double>(), 64 / 219.0 * 1e3, 0.01);
  EXPECT_THAT(program.summary()["simulated"]["compute"].get<std::string>(),
              HasSubstr("typical of p100, not measured on yours: fp32, 219 samples/s in batches of 64"));
  Program unknown(job + Flags{"--model=gpt2", "--compute=p100"});
  EXPECT_EQ(unknown.wait().exit_code, 2);
  EXPECT_THAT(unknown.errors(), HasSubstr("--compute=p100: no step of gpt2 on it is known; there are a100 (resnet50"));
}

// By one link alone, halving-doubling from the farthest rank on was the best there was, at 475 ms.
TEST(SimulatedRun, ChoosesTheCollectiveByLinksInsideAndBetweenHosts) {
  const auto run = [](const std::string& hosts, const Flags& more) {
    Program program(Flags{"--cluster=simulated", "--mode=allreduce", "--model=mlp:784-1024-1024-10", "--batch-size=8",
                          "--train-samples=2048", "--test-samples=64", "--steps=6", "--warmup-steps=2", "--compute=2ms",
                          "--shape=1gbit+50us", "--inside=100gbit+2us", "--bucket-bytes=16777216", "--hosts=" + hosts} +
                    more);
    EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
    return program.summary();
  };
  for (const std::string hosts : {"2x4", "2x3", "A:4,B:2"}) {
    const nlohmann::json chosen = run(hosts, {});
    const double communication = chosen["step_split_ms"]["communication"];
    for (const char* other : {"ring", "halving-doubling", "hierarchical", "direct"}) {
      const nlohmann::json given = run(hosts, {fmt::format("--collective={}", other)});
      EXPECT_LE(communication, 1.1 * given["step_split_ms"]["communication"].get<double>()) << other << " on " << hosts;
    }
    EXPECT_THAT(chosen.dump(), HasSubstr("GB/s inside a host, 50.0 us a message and 0.118 GB/s between 2 hosts of "));
    EXPECT_THAT(chosen.dump(), HasSubstr("(of payload, as simulated over 1 Gb/s each way a host, 50 us one way): "));
  }
}

TEST(SimulatedRun, SaysSoWhereItsFiguresStand) {
  Program program(small({"--mode=allreduce", "--workers=8"}) + kSimulated);
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("all times below are virtual"));
  EXPECT_THAT(end.out, HasSubstr("2.00 ms a step, as given"));
  EXPECT_THAT(end.out, testing::Not(HasSubstr("shared 2 cores"))) << "workers share no core in virtual time";
  const nlohmann::json simulated = program.summary()["simulated"];
  EXPECT_EQ(simulated["network"], "frames");
  EXPECT_GT(simulated["wall_seconds"], 0.0);
}

// Where the machine is measured, what it does besides a model's passes is, too; a time that is given has it all.
TEST(SimulatedRun, TakesTimeForUpdatesSumsAndCodecsWhereTheMachineIsMeasured) {
  const auto run = [](const Flags& more) {
    Program program(Flags{"--cluster=simulated", "--mode=ps", "--consistency=sync", "--workers=2", "--steps=8",
                          "--warmup-steps=2", "--train-samples=2048", "--test-samples=256", "--compress=int8"} +
                    more);
    EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
    return program.summary();
  };
  const nlohmann::json solo = run({"--compute=solo"});
  EXPECT_THAT(solo["simulated"]["processing"].get<std::string>(),
              testing::AllOf(HasSubstr("update"), HasSubstr("sum"), HasSubstr("encode"), HasSubstr("decode")));
  EXPECT_GT(solo["step_split_ms"]["codec"].get<double>(), 0.0);
  const nlohmann::json given = run({"--compute=2ms"});
  EXPECT_EQ(given["simulated"]["processing"], "");
  EXPECT_EQ(given["step_split_ms"]["codec"], 0.0);
}

// What happens to processes in virtual time, and how the run must end.
struct FaultCase {
  std::string name;
  Flags flags;
  int exit_code = 0;
  std::string said;
};

std::ostream& operator<<(std::ostream& out, const FaultCase& one) { return out << one.name; }

class SimulatedFault : public testing::TestWithParam<FaultCase> {};

TEST_P(SimulatedFault, EndsAsOnRealHostsAndAlikeAtEveryCall) {
  const Flags flags = Flags{"--steps=60", "--train-samples=8192", "--test-samples=256", "--batch-size=32"} +
                      kSimulated + GetParam().flags;
  Program first(flags), second(flags);
  const ProgramEnd end = first.wait();
  EXPECT_EQ(end.exit_code, GetParam().exit_code) << end.err;
  EXPECT_EQ(second.wait().exit_code, GetParam().exit_code);
  EXPECT_THAT(end.out + end.err, HasSubstr(GetParam().said));
  EXPECT_FALSE(first.steps_csv().empty());
  EXPECT_EQ(first.steps_csv(), second.steps_csv());
  EXPECT_EQ(first.weights(), second.weights());
}

INSTANTIATE_TEST_SUITE_P(
    Of, SimulatedFault,
    testing::Values(
        FaultCase{"AWorkerOfPsAsyncKilled",
                  {"--mode=ps", "--workers=3", "--servers=2", "--fault=kill:worker1@step20"},
                  0,
                  "2 workers go on"},
        FaultCase{"AWorkerOfPsSyncKilled",
                  {"--mode=ps", "--consistency=sync", "--workers=3", "--fault=kill:worker2@step20"},
                  0,
                  "2 workers go on"},
        FaultCase{"AWorkerStopped", {"--mode=ps", "--workers=3", "--fault=stop:worker1@step20+200ms"}, 0, "stopped"},
        FaultCase{"AWorkersLinksCut", {"--mode=ps", "--workers=3", "--fault=cut:worker1@step20+200ms"}, 0, "cut"},
        FaultCase{"AWorkerOfAllreduceKilled",
                  {"--mode=allreduce", "--workers=3", "--fault=kill:worker1@step20"},
                  5,
                  "needs every worker"},
        FaultCase{"AWorkerWhoseHostSumsKilled",
                  {"--mode=ps", "--consistency=sync", "--workers=4", "--hosts=2x2", "--aggregation=host",
                   "--fault=kill:worker3@step20"},
                  5,
                  "needs every worker"},
        FaultCase{
            "AWorkerWithItsServerKilled",
            {"--mode=ps", "--workers=3", "--servers=colocated", "--fault=kill:worker1@step20"},
            5,
            "worker 1, with server 1 in its process (host simulated; beginning a step at step 20, last heard 0.0 s "
            "ago) was killed by signal 9 (Killed); what its server held is gone with it"},
        FaultCase{"AWorkerOfElasticAllreduceKilled",
                  {"--mode=allreduce", "--workers=3", "--elastic", "--fault=kill:worker1@step20"},
                  0,
                  "2 workers go on"},
        FaultCase{"AWorkerThatComesBack",
                  {"--mode=allreduce", "--workers=3", "--elastic", "--respawn=0.05", "--fault=kill:worker1@step20"},
                  0,
                  "worker 1 is back"},
        FaultCase{"AServerWithAStandbyKilled",
                  {"--mode=ps", "--workers=2", "--servers=2", "--replicas=1", "--fault=kill:server0@step20"},
                  0,
                  "standby 0 takes its place"},
        FaultCase{"AServerKilledThatComesBackFromACheckpoint",
                  {"--mode=ps", "--consistency=sync", "--workers=2", "--checkpoint-every=10", "--respawn=0.1",
                   "--fault=kill:server0@step35"},
                  0,
                  "server 0 is back"},
        FaultCase{"AServerKilled", {"--mode=ps", "--workers=2", "--fault=kill:server0@step20"}, 5, "server 0"}),
    [](const testing::TestParamInfo<FaultCase>& info) { return info.param.name; });

// The one that is left waits for nobody, and still goes on with the other as soon as that is back.
TEST(SimulatedRun, AWorkerThatIsAloneTakesAnotherBack) {
  Program program({"--cluster=simulated", "--compute=20ms", "--mode=allreduce", "--workers=2", "--elastic",
                   "--respawn=100ms", "--fault=kill:worker1@step20", "--steps=60", "--train-samples=2048",
                   "--test-samples=256", "--batch-size=32"});
  ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
  const std::vector<std::string> workers = program.column("steps.csv", "worker"),
                                 steps = program.column("steps.csv", "step");
  std::int64_t of_worker_1 = 0;
  for (std::size_t row = 0; row < steps.size(); ++row) {
    if (workers[row] == "1" && std::stoi(steps[row]) >= 20) ++of_worker_1;
  }
  EXPECT_GE(of_worker_1, 30);
}

// As on real hosts, and with the time since the run began.
TEST(SimulatedRun, KeepsWhatEachProcessLogs) {
  Program program(small({"--mode=allreduce", "--workers=2"}) + kSimulated);
  ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
  const std::string log = text_of(program.output() / "logs/worker-1.log");
  EXPECT_THAT(log, testing::MatchesRegex("0\\.[0-9]+ s worker 1 \\[info\\] membership 0: training mlp.*"));
}

// The coordinator knows of the end 50 us later, the peers by their links 10 us later.
TEST(SimulatedRun, PeersOfAKilledProcessKnowItFromTheirConnections) {
  Program program(
      small({"--mode=allreduce", "--workers=3", "--elastic", "--shape=10gbit+10us", "--fault=kill:worker1@step5"}) +
      kSimulated);
  ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
  for (const char* log : {"logs/worker-0.log", "logs/worker-2.log"}) {
    EXPECT_THAT(text_of(program.output() / log), testing::ContainsRegex("membership 0 is over.*peer 1 is gone"));
  }
}

// What is interrupted goes on from its checkpoint to the weights of a run that was not, in virtual time as on hosts.
TEST(SimulatedRun, GoesOnFromACheckpoint) {
  for (const Flags& mode : {Flags{"--mode=allreduce", "--collective=ring", "--workers=3"},
                            Flags{"--mode=ps", "--consistency=sync", "--workers=2", "--servers=2"}}) {
    const Flags flags =
        mode + Flags{"--cluster=simulated", "--compute=2ms", "--train-samples=2048", "--test-samples=256"};
    Program whole(flags + Flags{"--steps=12"}), first(flags + Flags{"--steps=12", "--checkpoint-every=5"});
    ASSERT_EQ(whole.wait().exit_code, 0) << whole.errors();
    ASSERT_EQ(first.wait().exit_code, 0) << first.errors();
    EXPECT_EQ(first.weights(), whole.weights());
    Program second(flags + Flags{"--steps=12", "--resume=" + (first.output() / "checkpoints").string()});
    const ProgramEnd end = second.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    EXPECT_THAT(end.out + end.err, HasSubstr("resumed"));
    EXPECT_EQ(second.weights(), whole.weights());
  }
}

TEST(SimulatedRun, TakesMoreWorkersThanThereAreProcesses) {
  Program program({"--cluster=simulated", "--compute=1ms", "--mode=ps", "--consistency=sync", "--workers=128",
                   "--servers=8", "--steps=3", "--warmup-steps=1", "--train-samples=4096", "--test-samples=256",
                   "--batch-size=16", "--model=softmax"});
  EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
}

// 2 (p - 1) / p of the model's bytes over the link.
TEST(ProfileRun, TakesTheTimeOfTheWholeModel) {
  Program program({"--cluster=simulated", "--model=profile:resnet50", "--mode=allreduce", "--collective=ring",
                   "--overlap=off", "--bucket-bytes=134217728", "--compute=100ms", "--shape=25gbit", "--workers=8",
                   "--steps=4", "--warmup-steps=1"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const double parts = 2 * 7, bytes = 4 * 25.557e6, rate = 25e9 / 8 * 1448 / 1538;
  const nlohmann::json summary = program.summary();
  const double communication = parts / 8 * bytes / rate;
  EXPECT_NEAR(summary["step_split_ms"]["exposed_wait"].get<double>(), 1e3 * communication, 10 * communication);
  EXPECT_NEAR(summary["step_split_ms"]["forward"].get<double>(), 100.0 / 3, 0.1);
  EXPECT_NEAR(summary["bytes_out_per_step"].get<double>(), parts / 8 * bytes, 0.01 * bytes);
  EXPECT_TRUE(summary["final_test_accuracy"].is_null());
  EXPECT_THAT(end.out, testing::Not(testing::AnyOf(HasSubstr("loss"), HasSubstr("accuracy"), HasSubstr("evaluated"))));
}

// Behind a link that decides, int8 takes a quarter of the time, and a 1024th of that for its scales.
TEST(ProfileRun, SendsWhatCodecsMakeOfTheWholeModel) {
  for (const Flags& mode : {Flags{"--mode=allreduce", "--collective=ring", "--bucket-bytes=134217728"},
                            Flags{"--mode=ps", "--consistency=sync", "--servers=4"}}) {
    const auto communication = [&](const std::string& codec) {
      Program program(mode + Flags{"--cluster=simulated", "--model=profile:resnet50", "--compute=1ms", "--shape=1gbit",
                                   "--workers=8", "--steps=4", "--warmup-steps=1", "--compress=" + codec});
      EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
      return program.summary()["step_split_ms"]["communication"].get<double>();
    };
    const double whole = communication("none");
    EXPECT_NEAR(communication("fp16") / whole, 0.5, 0.01) << mode.front();
    EXPECT_NEAR(communication("int8") / whole, 0.251, 0.01) << mode.front();
  }
}

// What stands for 64 elements is updated as long as 64 are.
TEST(ProfileRun, TakesTheTimeOfUpdatesOfTheWholeModel) {
  Program program({"--cluster=simulated", "--model=profile:resnet50", "--mode=local", "--compute=100ms",
                   "--processing=update:1GB/s", "--steps=4", "--warmup-steps=1"});
  ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
  EXPECT_NEAR(program.summary()["step_split_ms"]["optimizer"].get<double>(), 4 * 25.557, 1);
}

// Three of each host's four parts of the ring that pass at once stay inside it, and share what is there.
TEST(ProfileRun, SharesWhatIsInsideAHost) {
  Program program({"--cluster=simulated", "--model=profile:resnet50", "--mode=allreduce", "--collective=ring",
                   "--overlap=off", "--bucket-bytes=134217728", "--compute=100ms", "--shape=25gbit", "--inside=40gbit",
                   "--hosts=4x4", "--steps=3", "--warmup-steps=1"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const double seconds = 2.0 * 15 * 3 / 16 * 4 * 25.557e6 / 5e9;
  EXPECT_NEAR(program.summary()["step_split_ms"]["exposed_wait"].get<double>(), 1e3 * seconds, 20 * seconds);
  EXPECT_THAT(end.out, HasSubstr("hosts 4x4, inside 40gbit"));
  EXPECT_THAT(text_of(program.output() / "config.toml"), HasSubstr("hosts = \"4x4\""));
}

// One of the 4 workers on each of two hosts pushes, and takes the weights: over a host's link go as many bytes each way
// as the model has, half of them gradients. Inside it each worker reads a part of three others' gradients, three write
// theirs, and the leader's half of what it pushes and takes is its own host's server's.
TEST(ProfileRun, SumsAHostsGradientsInItsMemoryFirst) {
  const auto exchange = [](const std::string& aggregation, const std::string& link, const std::string& inside) {
    Program program({"--cluster=simulated", "--model=profile:resnet50", "--mode=ps", "--consistency=sync",
                     "--servers=2", "--compute=1ms", "--hosts=2x4", "--workers=8", "--steps=4", "--warmup-steps=1",
                     "--aggregation=" + aggregation, "--shape=" + link, "--inside=" + inside});
    EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
    return program.summary()["step_split_ms"]["communication"].get<double>();
  };
  constexpr double kModel = 4 * 25.557e6;
  const double across = 1e3 * kModel / (10e9 / 8 * 1448 / 1538);
  const double behind_a_thin_link = exchange("host", "10gbit", "800gbit+1us");
  EXPECT_GT(behind_a_thin_link, across);
  EXPECT_LT(behind_a_thin_link, 1.1 * across);
  EXPECT_NEAR(exchange("off", "10gbit", "800gbit+1us") / behind_a_thin_link, 4, 0.4);
  const double inside = 1e3 * kModel / 5e9;
  EXPECT_NEAR(exchange("host", "800gbit", "40gbit+1us"), 4.75 * inside, 0.1 * inside);
}

// All servers lie in other racks than most workers, whose lines carry a tenth of what their hosts could send.
TEST(ProfileRun, IsSlowerBehindOversubscribedLines) {
  const auto wait = [](const Flags& more) {
    Program program(Flags{"--cluster=simulated", "--model=profile:resnet50", "--mode=ps", "--consistency=sync",
                          "--servers=8", "--compute=100ms", "--workers=8", "--steps=3", "--warmup-steps=1"} +
                    more);
    EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
    return program.summary()["step_split_ms"]["exposed_wait"].get<double>();
  };
  EXPECT_GT(wait({"--fabric=racks:2,oversubscription:10"}), 4 * wait({}));
}

TEST(ProfileRun, ComparesModesAndSaysNothingOfLearning) {
  Program program({"compare", "--cluster=simulated", "--model=profile:vgg16", "--modes=allreduce,ps:sync,ps:async",
                   "--servers=2", "--compute=15TFLOPS", "--workers=4", "--steps=4", "--warmup-steps=1", "--repeat=2"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("ps:async"));
  EXPECT_THAT(end.out, testing::Not(testing::AnyOf(HasSubstr("Learning"), HasSubstr("equality"))));
}

TEST(ProfileRun, SurvivesWhatARunSurvives) {
  Program program({"--cluster=simulated", "--model=profile:alexnet", "--mode=ps", "--servers=2", "--replicas=1",
                   "--compute=50ms", "--workers=3", "--steps=20", "--fault=kill:server0@step8,kill:worker1@step12"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out + end.err, HasSubstr("standby 0 takes its place"));
  EXPECT_THAT(end.out + end.err, HasSubstr("2 workers go on"));
}

TEST(ProfileRun, RefusesWhatAProfileCannotDo) {
  const auto refusal = [](const Flags& flags) {
    const ProgramEnd end = run_program(flags);
    EXPECT_EQ(end.exit_code, 2);
    return end.err;
  };
  const Flags profile{"--cluster=simulated", "--model=profile:resnet50", "--mode=ps"};
  EXPECT_THAT(refusal(profile), HasSubstr("--compute=150ms"));
  EXPECT_THAT(refusal({"--model=profile:resnet50", "--mode=ps", "--workers=2"}), HasSubstr("--cluster=simulated"));
  EXPECT_THAT(refusal({"--model=profile:resnet51", "--mode=ps"}), HasSubstr("no such profile"));
  EXPECT_THAT(refusal({"--model=profile:nowhere.json", "--mode=ps"}), HasSubstr("nowhere.json"));
  EXPECT_THAT(refusal(profile + Flags{"--compute=9ms", "--compress=powersgd:4"}),
              HasSubstr("leave --compress=powersgd:4 out"));
  EXPECT_THAT(refusal(profile + Flags{"--compute=9ms", "--evaluate-every=10"}), HasSubstr("--evaluate-every"));
  EXPECT_THAT(refusal(profile + Flags{"--compute=9ms", "--dataset=mnist"}), HasSubstr("--dataset"));
}

TEST(SimulatedRun, RefusesWhatItCannotDo) {
  const auto refusal = [](const Flags& flags) {
    const ProgramEnd end = run_program(kSimulated + flags);
    EXPECT_EQ(end.exit_code, 2);
    return end.err;
  };
  EXPECT_THAT(refusal({"--mode=allreduce", "--collective=mpi"}), HasSubstr("mpi"));
  EXPECT_THAT(refusal({"--mode=ps", "--hosts=2x1", "--workers=3"}), HasSubstr("has 2 slots"));
  EXPECT_THAT(refusal({"--mode=ps", "--hosts=2x1", "--fabric=racks:3"}), HasSubstr("there are 2 hosts"));
  EXPECT_THAT(refusal({"--mode=ps", "--inside=10gbit"}), HasSubstr("--hosts"));
  EXPECT_THAT(refusal({"--mode=ps", "--compute=0ms"}), HasSubstr("--compute"));
  EXPECT_THAT(run_program({"--mode=ps", "--hosts=2x1"}).err, HasSubstr("names no host"));
  EXPECT_THAT(run_program({"--mode=ps", "--network=fifo"}).err, HasSubstr("--cluster=simulated"));
}

}  // namespace
}  // namespace syncopate::testing_support
