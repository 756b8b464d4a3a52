// --microbatches and --gather=on-demand under a sharded state: the same job on every wire, and the time that a step of
// unequal samples takes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/experiments/program/divided_runs.h"
#include "tests/support/run_program.h"
#include "worker/data/batch_loader.h"

namespace syncopate::testing_support::on_demand_runs {
namespace {

using divided_runs::Flags;
using divided_runs::greatest_gap;
using divided_runs::weights_after;
using testing::HasSubstr;

const Flags kSmall{"--model=mlp",          "--optimizer=sgd",    "--learning-rate=0.05",
                   "--train-samples=2000", "--test-samples=100", "--evaluate-every=5"};
const Flags kOnDemand{"--mode=sharded", "--stage=3", "--gather=on-demand"};

// The job is the same, however its batches are cut, and whoever waits for whom.
TEST(OnDemand, FollowsLocalOnEveryWire) {
  const Flags job = kSmall + Flags{"--steps=12"};
  const std::vector<float> alone = weights_after(job + Flags{"--mode=local", "--batch-size=96"});
  const Flags three{"--workers=3", "--batch-size=32"};
  for (const Flags& way :
       {Flags{"--mode=sharded", "--stage=3", "--microbatches=4"},
        Flags{"--mode=sharded", "--stage=3", "--microbatches=4", "--transport=sockets", "--overlap=off"}, kOnDemand,
        kOnDemand + Flags{"--microbatches=4"}, kOnDemand + Flags{"--microbatches=2", "--transport=sockets"},
        kOnDemand + Flags{"--transport=tcp"}, kOnDemand + Flags{"--microbatches=2", "--shape=10gbit+50us"},
        kOnDemand + Flags{"--microbatches=2", "--cluster=simulated", "--compute=5ms"}}) {
    EXPECT_LT(greatest_gap(weights_after(job + three + way), alone), 1e-5) << way.back();
  }
}

TEST(OnDemand, GoesOnFromItsCheckpointAndAsAnAllReduce) {
  const Flags job = kSmall + Flags{"--workers=2", "--batch-size=16"};
  const Flags cut = kOnDemand + Flags{"--microbatches=2"};
  const std::vector<float> whole = weights_after(job + cut + Flags{"--steps=12"});
  Program first(job + cut + Flags{"--steps=6", "--checkpoint-every=6"});
  ASSERT_EQ(first.wait().exit_code, 0) << first.errors();
  const std::string resume = "--resume=" + first.output().string();
  for (const Flags& then : {cut, Flags{"--mode=allreduce"}}) {
    EXPECT_LT(greatest_gap(weights_after(job + then + Flags{"--steps=12", resume}), whole), 1e-5) << then.front();
  }
}

TEST(OnDemand, EndsWithAWorkerThatIsLostAndNamesIt) {
  Program program(kSmall + kOnDemand +
                  Flags{"--workers=3", "--batch-size=16", "--steps=1000", "--timeout=5", "--fault=kill:worker1@step8"});
  EXPECT_NE(program.wait().exit_code, 0);
  EXPECT_THAT(program.errors(), HasSubstr("worker 1"));
}

TEST(OnDemand, ComparesItselfWithAllReduceFirst) {
  const ProgramEnd end =
      run_program({"compare", "--modes=allreduce,sharded:3,sharded:on-demand", "--workers=2", "--microbatches=2",
                   "--steps=12", "--batch-size=16", "--train-samples=2000", "--test-samples=100"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("sharded:on-demand follow the same curve"));
}

// What the samples of each microbatch cost, by step, worker and microbatch.
std::vector<std::vector<std::vector<double>>> costs(int workers, int batch, int parts, int steps, int samples) {
  const worker::SampleCosts drawn = *worker::SampleCosts::parse("lognormal:1");
  std::vector<std::int64_t> permutation(static_cast<std::size_t>(samples)), indices(static_cast<std::size_t>(batch));
  std::vector<std::vector<std::vector<double>>> costs;
  for (int step = 0; step < steps; ++step) {
    costs.emplace_back();
    for (int rank = 0; rank < workers; ++rank) {
      const worker::BatchOrder order{
          .dataset_size = samples, .batch_size = batch, .rank = rank, .workers = workers, .costs = drawn};
      worker::epoch_permutation(order.seed, step / order.steps_per_epoch(), permutation);
      worker::batch_indices(order, permutation, step % order.steps_per_epoch(), indices);
      costs.back().emplace_back(static_cast<std::size_t>(parts));
      for (int i = 0; i < batch; ++i) {
        costs.back().back()[static_cast<std::size_t>(i * parts / batch)] +=
            drawn.of(order.seed, indices[static_cast<std::size_t>(i)]) / batch;
      }
    }
  }
  return costs;
}

// With collectives a step takes the sum over its microbatches of what the slowest worker needs for each, but for what
// is gathered ahead; on demand what the slowest needs for all.
TEST(OnDemand, WaitsOnceAStepForUnequalSamples) {
  constexpr int kWorkers = 4, kBatch = 4, kParts = 4, kSteps = 30, kSamples = 480;
  double meeting_in_each = 0, meeting_once = 0, own = 0;
  for (const auto& step : costs(kWorkers, kBatch, kParts, kSteps, kSamples)) {
    double slowest = 0;
    for (int part = 0; part < kParts; ++part) {
      double most = 0;
      for (const auto& of_worker : step) {
        most = std::max(most, of_worker[static_cast<std::size_t>(part)]);
        own += of_worker[static_cast<std::size_t>(part)] / kWorkers;
      }
      meeting_in_each += most;
    }
    for (const auto& of_worker : step) {
      double sum = 0;
      for (const double part : of_worker) sum += part;
      slowest = std::max(slowest, sum);
    }
    meeting_once += slowest;
  }
  const auto seconds = [&](const std::string& gather) {
    Program program({"--mode=sharded", "--stage=3", "--gather=" + gather, fmt::format("--microbatches={}", kParts),
                     fmt::format("--workers={}", kWorkers), fmt::format("--batch-size={}", kBatch),
                     fmt::format("--steps={}", kSteps), fmt::format("--train-samples={}", kSamples),
                     "--test-samples=100", "--sample-cost=lognormal:1", "--cluster=simulated", "--compute=100ms",
                     "--shape=400gbit+1us", "--model=mlp:784-256-256-256-256-256-10", "--bucket-bytes=65536",
                     "--warmup-steps=0", "--evaluate-every=100epochs"});
    EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
    double sum = 0;
    const std::vector<std::string> workers = program.column("steps.csv", "worker"),
                                   times = program.column("steps.csv", "total_us");
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (workers[i] == "0") sum += std::stod(times[i]) / 1e6;
    }
    return sum;
  };
  const double collective = seconds("collective"), on_demand = seconds("on-demand");
  EXPECT_NEAR(on_demand / (0.1 * meeting_once), 1, 0.02);
  EXPECT_GT(collective, 1.1 * on_demand);
  EXPECT_LT(collective, 1.02 * 0.1 * meeting_in_each);
  EXPECT_GT(on_demand, 0.1 * own);
}

}  // namespace
}  // namespace syncopate::testing_support::on_demand_runs
