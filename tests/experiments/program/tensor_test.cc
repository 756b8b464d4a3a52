// --tensor against its formulas: what a worker sends and holds, how long a step takes; and what becomes of a run that
// loses a worker, or goes on from a checkpoint.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/experiments/program/divided_runs.h"
#include "tests/support/run_program.h"
#include "tests/support/slowness.h"

namespace syncopate::testing_support::tensor_runs {
namespace {

using testing::HasSubstr;
using namespace divided_runs;

// Two pairs of layers: 784 -> 512 -> 784, 784 -> 512 -> 10.
const Flags kJob = kSmall + Flags{"--mode=allreduce", "--model=mlp:784-512-784-512-10", "--optimizer=adam",
                                  fmt::format("--batch-size={}", kBatch)};
// Values of a sample that are summed in a step: the outputs of both pairs, and the gradient of the second one's inputs.
constexpr double kSummed = 784 + 10 + 784;

Flags tensor(int parts, int workers) {
  return {fmt::format("--tensor={}", parts), fmt::format("--workers={}", workers)};
}

// The elements of a worker's arena, with 6 of padding at the end.
double own_elements(double parts) { return (3 * 784 * 512 + 10 * 512 + 2 * 512) / parts + 784 + 10 + 6; }

TEST(Tensor, FollowsLocalOnEveryWire) {
  const Flags job = kSmall + Flags{"--model=mlp", "--optimizer=sgd", "--learning-rate=0.05"};
  const std::vector<float> alone = weights_after(job + Flags{"--mode=local", "--batch-size=128"});
  for (const Flags& way :
       {Flags{"--transport=shm"}, Flags{"--transport=tcp"}, Flags{"--transport=sockets", "--collective=ring"},
        Flags{"--transport=shm", "--collective=doubling"}, Flags{"--cluster=simulated", "--compute=5ms"}}) {
    const std::vector<float> split =
        weights_after(job + way + tensor(2, 4) + Flags{"--mode=allreduce", "--batch-size=32"});
    EXPECT_LT(greatest_gap(split, alone), 1e-5) << way.front();
  }
}

TEST(Tensor, FollowsLocalOfTexts) {
  const Flags job = kSmall + Flags{"--model=gpt:2-4-16", "--dataset=grammar", "--context=16", "--optimizer=sgd",
                                   "--learning-rate=0.05"};
  const std::vector<float> alone = weights_after(job + Flags{"--mode=local", "--batch-size=32"});
  for (const int parts : {2, 4}) {
    const std::vector<float> split =
        weights_after(job + tensor(parts, 4) + Flags{"--mode=allreduce", "--batch-size=8"});
    EXPECT_LT(greatest_gap(split, alone), 1e-5) << parts;
  }
}

// Stages whose layers are divided themselves.
TEST(Tensor, FollowsLocalInThePlacesOfAPipeline) {
  for (const Flags& model :
       {Flags{"--model=mlp:784-64-48-32-32-32-10"}, Flags{"--model=gpt:2-4-16", "--dataset=grammar", "--context=16"}}) {
    const Flags job = kSmall + model + Flags{"--optimizer=sgd", "--learning-rate=0.05"};
    const std::vector<float> alone = weights_after(job + Flags{"--mode=local", "--batch-size=64"});
    for (const Flags& way : {Flags{"--transport=shm", "--pipeline=2"}, Flags{"--transport=sockets", "--pipeline=4"},
                             Flags{"--cluster=simulated", "--compute=5ms", "--pipeline=2"}}) {
      const std::vector<float> split =
          weights_after(job + way + tensor(2, 8) + Flags{"--mode=allreduce", "--batch-size=8", "--microbatches=4"});
      EXPECT_LT(greatest_gap(split, alone), 1e-5) << model.front() << way.front();
    }
  }
}

// 2 (T - 1) / T of what is summed, for each worker; and its shares' gradients around a ring of D workers.
TEST(Tensor, SendsWhatItsFormulaSays) {
  for (const auto& [workers, parts] : {std::pair{2, 2}, {4, 2}, {4, 4}}) {
    Program program(kJob + tensor(parts, workers) + Flags{"--transport=sockets", "--collective=ring"});
    ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
    const double replicas = static_cast<double>(workers) / parts;
    const double activations = 2.0 * (parts - 1) * 4 * kSummed * kBatch * workers;  // of all workers
    const double ring = 2 * (replicas - 1) * parts * 4 * own_elements(parts);
    EXPECT_EQ(sum_of(numbers(program, "bytes_out")), kSteps * (activations + ring)) << workers << " " << parts;
    EXPECT_EQ(sum_of(numbers(program, "bytes_in")), kSteps * (activations + ring)) << workers << " " << parts;
    // One worker of each replica counts its samples.
    EXPECT_EQ(sum_of(numbers(program, "samples")), static_cast<double>(kSteps) * kBatch * workers);
  }
}

// A worker computes as long as it would alone, for its part of a batch that is as many times greater, but for what all
// have whole; the sums take their time in the midst of it.
TEST(Tensor, TakesTheTimeThatItsFormulaSays) {
  constexpr double kBytesPerSecond = 1e9 / 8;
  for (const int parts : {2, 4}) {
    Program program(kJob + tensor(parts, parts) +
                    Flags{"--cluster=simulated", "--compute=20ms", "--shape=1gbit+10us", "--collective=ring"});
    ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
    const double whole = 784 + 10, all = 3 * 784 * 512 + 10 * 512 + 2 * 512 + whole;
    const double compute_us = 20e3 * (1 + (parts - 1) * whole / all);
    const double summed = 4 * kSummed * kBatch * parts;
    const double sums_us = 2.0 * (parts - 1) * (1e6 * summed / parts / kBytesPerSecond + 3 * 10);
    const std::vector<double> steps = numbers(program, "total_us", 1), waits = numbers(program, "exposed_wait_us", 1);
    const auto count = static_cast<double>(steps.size());
    EXPECT_NEAR(sum_of(steps) / count / (compute_us + sums_us), 1, 0.02) << parts;
    EXPECT_NEAR(sum_of(waits) / count / sums_us, 1, 0.1) << parts;
    for (const char* part : {"forward_us", "backward_us"}) {
      for (const double each : numbers(program, part)) EXPECT_GE(each, 0) << part;
    }
    EXPECT_NEAR(sum_of(numbers(program, "forward_us", 1)) / count / (compute_us / 3), 1, 0.01) << "without waits";
  }
}

// Under adam 16 bytes for each parameter, of which nearly all are divided.
TEST(Tensor, HoldsItsSharesAlone) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's memory is counted, too";
  constexpr double kAll = 784 * 2048 + 4 * 2048 * 2048 + 10 * 2048;
  const double whole = std::ranges::min(peaks_of({"--workers=2"}));
  for (const int parts : {2, 4}) {
    const double own = std::ranges::min(peaks_of(tensor(parts, parts)));
    EXPECT_NEAR((whole - own) / (16 * kAll * (1 - 1.0 / parts)), 1, 0.1) << parts;
  }
}

TEST(Tensor, GoesOnFromItsCheckpointWithTheSameBitsAndWithOtherParts) {
  const Flags job{"--mode=allreduce",           "--model=mlp:784-32-32-32-10",
                  "--train-samples=2000",       "--test-samples=100",
                  "--evaluate-every=100epochs", "--workers=4",
                  "--optimizer=adam",           "--batch-size=16"};
  const Flags two{"--tensor=2"};
  Program whole(job + two + Flags{"--steps=20"});
  ASSERT_EQ(whole.wait().exit_code, 0) << whole.errors();
  Program first(job + two + Flags{"--steps=10", "--checkpoint-every=5"});
  ASSERT_EQ(first.wait().exit_code, 0) << first.errors();
  for (const Flags& way :
       {two, Flags{"--tensor=4"}, Flags{"--tensor=1"}, Flags{"--pipeline=2"}, Flags{"--pipeline=2", "--tensor=2"}}) {
    Program second(job + way + Flags{"--steps=20", "--resume=" + first.output().string()});
    ASSERT_EQ(second.wait().exit_code, 0) << second.errors();
    EXPECT_LE(greatest_gap(second.weights(), whole.weights()), way == two ? 0 : 1e-5) << way.front();
  }
}

// A stage's parts write theirs, and an allreduce goes on from all of them.
TEST(Tensor, GoesOnFromTheCheckpointOfAPipelineWhoseLayersWereDivided) {
  const Flags job{"--mode=allreduce",           "--model=mlp:784-32-32-32-10",
                  "--train-samples=2000",       "--test-samples=100",
                  "--evaluate-every=100epochs", "--workers=4",
                  "--optimizer=momentum",       "--batch-size=16"};
  const std::vector<float> whole = weights_after(job + Flags{"--steps=20"});
  Program first(job + Flags{"--steps=10", "--checkpoint-every=10", "--pipeline=2", "--tensor=2"});
  ASSERT_EQ(first.wait().exit_code, 0) << first.errors();
  const std::vector<float> second = weights_after(job + Flags{"--steps=20", "--resume=" + first.output().string()});
  EXPECT_LE(greatest_gap(second, whole), 1e-5);
}

// Between steps worker 0 has all weights, for as long as they are evaluated.
TEST(Tensor, EvaluatesTheWholeModel) {
  const Flags job{"--mode=allreduce",   "--model=mlp",         "--train-samples=2000", "--test-samples=400",
                  "--evaluate-every=5", "--workers=4",         "--batch-size=16",      "--steps=20",
                  "--optimizer=sgd",    "--learning-rate=0.05"};
  const auto losses_of = [](const Flags& flags) {
    Program program(flags);
    EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
    std::vector<double> losses;
    for (const std::string& cell : program.column("evals.csv", "loss")) losses.push_back(std::stod(cell));
    return losses;
  };
  const std::vector<double> whole = losses_of(job), split = losses_of(job + Flags{"--tensor=2"});
  ASSERT_EQ(split.size(), whole.size());
  EXPECT_GE(split.size(), 4u);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(split[i], whole[i], 1e-5) << i;
}

TEST(Tensor, EndsWithTheVerdictOnTheWorkerThatIsLost) {
  for (const std::string wire : {"shm", "sockets"}) {
    Program program({"--mode=allreduce", "--workers=4", "--tensor=2", "--epochs=500", "--train-samples=2000",
                     "--test-samples=100", "--timeout=10", "--transport=" + wire, "--fault=kill:worker3@step20"});
    const ProgramEnd end = program.wait();
    EXPECT_EQ(end.exit_code, 5) << wire << program.errors();
    EXPECT_THAT(program.errors(), HasSubstr("worker 3")) << wire;
  }
}

TEST(Tensor, NamesAWorkerThatFallsSilent) {
  Program program({"--mode=allreduce", "--workers=2", "--tensor=2", "--epochs=500", "--train-samples=2000",
                   "--test-samples=100", "--timeout=4", "--fault=stop:worker1@step20+60s"});
  const ProgramEnd end = program.wait();
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(program.errors(), HasSubstr("worker 1"));
}

TEST(Tensor, SaysWhatCannotBeDivided) {
  const auto refusal = [](const Flags& flags) {
    const ProgramEnd end = run_program(Flags{"--mode=allreduce"} + flags);
    EXPECT_EQ(end.exit_code, 2);
    return end.err;
  };
  EXPECT_THAT(refusal({"--workers=3", "--tensor=3", "--model=mlp"}),
              HasSubstr("--tensor=3: --model=mlp: dense1 has 256 outputs, of which 3 workers cannot have as many each; "
                        "use a multiple of 3"));
  EXPECT_THAT(refusal({"--workers=3", "--tensor=3", "--model=gpt", "--dataset=grammar"}),
              HasSubstr("--tensor=3: --model=gpt: its 4 heads cannot be divided among 3 workers alike"));
  EXPECT_THAT(refusal({"--workers=2", "--tensor=2", "--model=softmax"}),
              HasSubstr("--tensor=2: --model=softmax: has no two dense layers in a row and no attention"));
}

}  // namespace
}  // namespace syncopate::testing_support::tensor_runs
