// --pipeline under --mode=ps: the workers of a stage keep its weights at servers, which have shards of every stage.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/experiments/program/divided_runs.h"
#include "tests/support/run_program.h"

namespace syncopate::testing_support::pipelines_at_servers {
namespace {

using testing::HasSubstr;
using testing::Not;
using namespace divided_runs;

const Flags kStaged{"--mode=ps", "--microbatches=4"};
const Flags kTwoPipelines = kStaged + Flags{"--servers=2", "--workers=4", "--pipeline=2"};
const Flags kSync{"--consistency=sync"};

TEST(PipelineAtServers, FollowsLocalOnEveryWire) {
  const Flags job = kSmall + Flags{"--model=mlp:784-32-32-32-10", "--optimizer=adam"};
  const std::vector<float> alone = weights_after(job + Flags{"--mode=local", "--batch-size=128"});
  for (const Flags& way : {Flags{"--transport=shm", "--pipeline=2", "--servers=2", "--shards-per-server=2"},
                           Flags{"--transport=tcp", "--pipeline=2", "--servers=2", "--overlap-forward"},
                           Flags{"--transport=sockets", "--pipeline=4", "--servers=3"},
                           Flags{"--transport=tcp", "--pipeline=2", "--servers=colocated"},
                           Flags{"--cluster=simulated", "--compute=5ms", "--pipeline=2"}}) {
    const std::vector<float> staged =
        weights_after(job + kStaged + kSync + Flags{"--workers=4", "--batch-size=32"} + way);
    EXPECT_LT(greatest_gap(staged, alone), 1e-5) << way.front();
  }
}

// The tokens' table is of the first stage, and the last one reads it, too.
TEST(PipelineAtServers, FollowsLocalOfTexts) {
  const Flags job = kSmall + Flags{"--model=gpt:2-2-16", "--dataset=grammar", "--context=16", "--optimizer=sgd",
                                   "--learning-rate=0.05"};
  const std::vector<float> alone = weights_after(job + Flags{"--mode=local", "--batch-size=48"});
  for (const Flags& way : {Flags{}, Flags{"--overlap-forward", "--transport=tcp"}}) {
    const std::vector<float> staged =
        weights_after(job + kStaged + kSync + way + Flags{"--workers=6", "--pipeline=3", "--batch-size=8"});
    EXPECT_LT(greatest_gap(staged, alone), 1e-5) << way.size();
  }
}

// Activations to the next stage and their gradients back, and each worker's stage to the servers.
TEST(PipelineAtServers, SendsWhatItsFormulaSays) {
  constexpr double kWidth = 784, kReplicas = 2;
  const double activations = 2 * 4 * kWidth * kBatch * 4;
  const double parameters = 4 * (kWidth * kWidth + kWidth) + 10 * kWidth + 10 + 6;  // 6: padding at the end
  for (const std::string consistency : {"sync", "async"}) {
    Program program(kSmall + kTwoPipelines +
                    Flags{"--model=mlp:784-784-784-784-784-10", fmt::format("--batch-size={}", kBatch),
                          "--transport=tcp", "--consistency=" + consistency});
    ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
    for (const char* direction : {"bytes_out", "bytes_in"}) {
      EXPECT_EQ(sum_of(numbers(program, direction)), kSteps * (activations + kReplicas * 4 * parameters))
          << consistency << " " << direction;
    }
  }
}

// A stage's gradients are older by the updates that the other pipelines have made to that stage, and by no others.
TEST(PipelineAtServers, CountsTheStalenessOfAStageByItsReplicas) {
  const Flags job{"--mode=ps",           "--servers=2",          "--workers=8",        "--pipeline=2",
                  "--cluster=simulated", "--model=mlp",          "--compute=20ms",     "--shape=10gbit+20us",
                  "--microbatches=4",    "--train-samples=4000", "--test-samples=100", "--steps=12"};
  Program free(job + Flags{"--consistency=async"});
  ASSERT_EQ(free.wait().exit_code, 0) << free.errors();
  for (const double each : numbers(free, "staleness_mean", 4)) EXPECT_EQ(each, 3) << "of four pipelines";
  const std::string report = run_program({"why", free.output().string()}).out;
  EXPECT_THAT(report, HasSubstr("pipeline bubble"));
  const std::vector<double> communication = numbers(free, "communication_us", 1), total = numbers(free, "total_us", 1);
  for (std::size_t i = 0; i < total.size(); ++i) EXPECT_LE(communication[i], total[i] * 1.001) << "step " << i;
  EXPECT_THAT(report, Not(HasSubstr("straggler"))) << "a stage has more layers than the other";
  Program bounded(job + Flags{"--consistency=bounded:1"});
  ASSERT_EQ(bounded.wait().exit_code, 0) << bounded.errors();
  const std::vector<double> most = numbers(bounded, "staleness_max");
  EXPECT_LE(std::ranges::max(most), 2 * 3);
}

// What pipelines wait for each other where samples cost unequal, asynchronous ones need not.
TEST(PipelineAtServers, GoOnWithoutASlowerPipeline) {
  const auto rate_of = [](const std::string& consistency, const Flags& costs) {
    Program program(Flags{"--mode=ps", "--consistency=" + consistency, "--cluster=simulated", "--workers=16",
                          "--pipeline=4", "--servers=4", "--model=profile:resnet50", "--compute=97ms",
                          "--shape=10gbit+50us", "--batch-size=8", "--microbatches=8", "--steps=20"} +
                    costs);
    EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
    return program.summary()["samples_per_second"].get<double>();
  };
  const double equal = rate_of("async", {}) / rate_of("sync", {});
  const double unequal =
      rate_of("async", {"--sample-cost=lognormal:1"}) / rate_of("sync", {"--sample-cost=lognormal:1"});
  EXPECT_LT(equal, 1.05);
  EXPECT_GT(unequal, 1.15);
}

TEST(PipelineAtServers, GoOnFromTheirCheckpointWithTheSameBitsAndInOtherWays) {
  const Flags job{"--workers=4",      "--model=mlp:784-32-32-32-10", "--train-samples=2000", "--test-samples=100",
                  "--optimizer=adam", "--evaluate-every=100epochs",  "--batch-size=16"};
  const Flags at_servers = kSync + Flags{"--mode=ps"};
  const Flags same = at_servers + Flags{"--pipeline=2", "--microbatches=4", "--servers=2"};
  Program whole(job + same + Flags{"--steps=20"});
  ASSERT_EQ(whole.wait().exit_code, 0) << whole.errors();
  Program first(job + same + Flags{"--steps=10", "--checkpoint-every=5"});
  ASSERT_EQ(first.wait().exit_code, 0) << first.errors();
  for (const Flags& way :
       {same, at_servers + Flags{"--pipeline=4", "--microbatches=4", "--servers=3"}, at_servers + Flags{"--servers=1"},
        Flags{"--mode=allreduce", "--pipeline=2"}, Flags{"--mode=allreduce"}}) {
    Program second(job + way + Flags{"--steps=20", "--resume=" + first.output().string()});
    ASSERT_EQ(second.wait().exit_code, 0) << testing::PrintToString(way) << second.errors();
    EXPECT_LE(greatest_gap(second.weights(), whole.weights()), way == same ? 0 : 1e-5) << testing::PrintToString(way);
    EXPECT_EQ(second.summary()["resumed_from"]["samples"], 10 * 4 * 16) << testing::PrintToString(way);
  }
}

// A predecessor whose workers went at their own pace says by its pushes how far it came.
TEST(PipelineAtServers, GoOnAtTheStepThatAnAsynchronousRunHasReached) {
  const Flags job{"--model=mlp:784-512-512-10", "--train-samples=2000", "--test-samples=100",
                  "--evaluate-every=100epochs", "--workers=4",          "--batch-size=16"};
  Program first(job + Flags{"--mode=ps", "--consistency=async", "--steps=100", "--checkpoint-every=25"});
  ASSERT_EQ(first.wait().exit_code, 0) << first.errors();
  std::vector<int> steps;
  for (const Flags& way : {Flags{"--mode=allreduce"}, Flags{"--mode=allreduce", "--pipeline=2"},
                           Flags{"--mode=allreduce", "--tensor=2"}, kSync + Flags{"--mode=ps", "--pipeline=2"}}) {
    Program second(job + way + Flags{"--steps=120", "--resume=" + first.output().string()});
    ASSERT_EQ(second.wait().exit_code, 0) << testing::PrintToString(way) << second.errors();
    steps.push_back(second.summary()["resumed_from"]["step"].get<int>());
  }
  EXPECT_THAT(steps, testing::Each(steps.front()));
  EXPECT_LE(steps.front(), 100);
}

// The row that --vary begins with has too few workers for them.
TEST(PipelineAtServers, AreProvenWithTheWorkersThatTheyHave) {
  const ProgramEnd end =
      run_program({"compare", "--cluster=simulated", "--compute=20ms", "--shape=10gbit", "--steps=4", "--repeat=1",
                   "--model=mlp:784-16-16-16-10", "--servers=1", "--modes=allreduce,ps:async:pipeline:4",
                   "--vary=workers=2,4", "--train-samples=2000", "--test-samples=100"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("ps:async:pipeline:4 workers=2: left out"));
  EXPECT_THAT(end.out, HasSubstr("and ps:sync:pipeline:4 follow the same curve"));
}

TEST(PipelineAtServers, EndWithTheVerdictOnTheProcessThatIsLost) {
  for (const std::string consistency : {"sync", "async"}) {
    for (const std::string lost : {"worker3", "server1"}) {
      Program program(kTwoPipelines + Flags{"--epochs=500", "--train-samples=2000", "--test-samples=100",
                                            "--timeout=10", "--consistency=" + consistency,
                                            fmt::format("--fault=kill:{}@step20", lost)});
      const ProgramEnd end = program.wait();
      EXPECT_EQ(end.exit_code, 5) << consistency << lost << program.errors();
      EXPECT_THAT(program.errors(), HasSubstr(fmt::format("{} {}", lost.substr(0, 6), lost.back()))) << consistency;
    }
  }
}

TEST(PipelineAtServers, NameAProcessThatFallsSilent) {
  for (const std::string silent : {"worker2", "server0"}) {
    Program program(kTwoPipelines + kSync +
                    Flags{"--epochs=500", "--train-samples=2000", "--test-samples=100", "--timeout=4",
                          fmt::format("--fault=stop:{}@step20+60s", silent)});
    const ProgramEnd end = program.wait();
    EXPECT_NE(end.exit_code, 0);
    EXPECT_THAT(program.errors(), HasSubstr(fmt::format("{} {}", silent.substr(0, 6), silent.back())));
  }
}

}  // namespace
}  // namespace syncopate::testing_support::pipelines_at_servers
