// --pipeline against its formulas: what a worker sends, what it holds, how long it waits; and what becomes of a run
// that loses a stage, or goes on from a checkpoint.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/experiments/program/divided_runs.h"
#include "tests/support/run_program.h"
#include "tests/support/slowness.h"

namespace syncopate::testing_support::pipeline_runs {
namespace {

using testing::HasSubstr;
using namespace divided_runs;

constexpr double kWidth = 784;
const std::string kStashing = "--pipeline-schedule=pipedream";
// For what is only so once all stages have a batch.
const Flags kLong{"--train-samples=2000", "--test-samples=100", "--evaluate-every=100epochs", "--steps=40"};
// Layers alike, but for the last: 784 x 784 each.
const Flags kJob = kSmall + Flags{"--mode=allreduce", "--model=mlp:784-784-784-784-784-10", "--optimizer=adam",
                                  fmt::format("--batch-size={}", kBatch)};

// The job of all workers is the same, however they divide it.
TEST(Pipeline, FollowsLocalOnEveryWire) {
  const Flags job = kSmall + Flags{"--model=mlp", "--optimizer=sgd", "--learning-rate=0.05"};
  const std::vector<float> alone = weights_after(job + Flags{"--mode=local", "--batch-size=128"});
  for (const Flags& way :
       {Flags{"--transport=shm"}, Flags{"--transport=tcp"}, Flags{"--transport=sockets", "--pipeline-schedule=gpipe"},
        Flags{"--cluster=simulated", "--compute=5ms"}}) {
    const std::vector<float> staged = weights_after(
        job + way + Flags{"--mode=allreduce", "--workers=4", "--batch-size=32", "--pipeline=2", "--microbatches=4"});
    EXPECT_LT(greatest_gap(staged, alone), 1e-5) << way.front();
  }
}

// With several chunks a stage, and with backward in two passes.
TEST(Pipeline, FollowsLocalByEverySchedule) {
  const Flags images{"--dataset=patterns", "--image-size=16", "--classes=4"};
  for (const Flags& model : {Flags{"--model=mlp:784-48-40-32-24-10"}, Flags{"--model=lenet"} + images}) {
    const Flags job = kSmall + model + Flags{"--optimizer=sgd", "--learning-rate=0.05"};
    const std::vector<float> alone = weights_after(job + Flags{"--mode=local", "--batch-size=64"});
    for (const std::string schedule : {"interleaved", "zero-bubble"}) {
      for (const Flags& way : {Flags{"--transport=shm"}, Flags{"--transport=sockets", "--collective=ring"},
                               Flags{"--cluster=simulated", "--compute=5ms"}}) {
        const std::vector<float> staged =
            weights_after(job + way +
                          Flags{"--mode=allreduce", "--workers=4", "--batch-size=16", "--pipeline=2",
                                "--microbatches=4", "--pipeline-schedule=" + schedule});
        EXPECT_LT(greatest_gap(staged, alone), 3e-5) << model.front() << schedule << way.front();
      }
    }
  }
}

TEST(Pipeline, FollowsLocalOfTexts) {
  const Flags job = kSmall + Flags{"--model=gpt:2-2-16", "--dataset=grammar", "--context=16", "--optimizer=sgd",
                                   "--learning-rate=0.05"};
  const std::vector<float> alone = weights_after(job + Flags{"--mode=local", "--batch-size=24"});
  for (const Flags& way : {Flags{"--microbatches=4"}, Flags{"--microbatches=4", "--pipeline-schedule=zero-bubble"},
                           Flags{"--microbatches=6", "--pipeline-schedule=interleaved"}}) {
    const std::vector<float> staged =
        weights_after(job + way + Flags{"--mode=allreduce", "--workers=3", "--batch-size=8", "--pipeline=3"});
    EXPECT_LT(greatest_gap(staged, alone), 1e-5) << way.back();
  }
}

// Activations to the next stage and their gradients back: twice the activations of all samples, at each cut; and each
// stage's gradients around a ring of its workers.
TEST(Pipeline, SendsWhatItsFormulaSays) {
  for (const auto& [workers, stages, chunks] : {std::tuple{2, 2, 1}, {4, 2, 1}, {4, 4, 1}, {2, 2, 2}, {4, 2, 2}}) {
    const Flags chunked{"--pipeline-schedule=interleaved", fmt::format("--pipeline-chunks={}", chunks)};
    Program program(kJob + (chunks > 1 ? chunked : Flags()) +
                    Flags{"--transport=sockets", "--collective=ring", fmt::format("--workers={}", workers),
                          fmt::format("--pipeline={}", stages), "--microbatches=4"});
    ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
    const double activations = 2 * 4 * kWidth * kBatch * workers * (stages * chunks - 1);
    const double parameters = 4 * (kWidth * kWidth + kWidth) + 10 * kWidth + 10 + 6;  // 6: padding at the end
    const double ring = 2.0 * (static_cast<double>(workers) / stages - 1) * 4 * parameters;
    EXPECT_EQ(sum_of(numbers(program, "bytes_out")), kSteps * (activations + ring)) << workers << " " << stages;
    EXPECT_EQ(sum_of(numbers(program, "bytes_in")), kSteps * (activations + ring)) << workers << " " << stages;
  }
}

// The bubble by the formula, as microbatches of the time through a whole stage; in virtual time and over a wire that
// takes hardly any: equal stages, of two layers of 784 x 784 each. A third of the time is forward's, and a third that
// of the gradients of weights.
TEST(Pipeline, WaitsAsItsFormulaSays) {
  constexpr double kStages = 4;
  struct Schedule {
    std::string name;
    double bubble = kStages - 1;
    std::vector<int> microbatches = {4, 8};
  };
  for (const auto& [schedule, bubble, counts] :
       {Schedule{.name = "gpipe", .microbatches = {1, 2, 4, 8}}, Schedule{.name = "1f1b", .microbatches = {1, 2, 4, 8}},
        Schedule{.name = "interleaved", .bubble = (kStages - 1) / 2},
        Schedule{.name = "zero-bubble", .bubble = (kStages - 1) / 3}}) {
    for (const int microbatches : counts) {
      Program program(kSmall + Flags{"--mode=allreduce", "--model=mlp:784-784-784-784-784-784-784-784-784-10",
                                     fmt::format("--batch-size={}", kBatch), "--cluster=simulated", "--compute=100ms",
                                     "--shape=400gbit+1us", "--workers=4", "--pipeline=4",
                                     "--pipeline-schedule=" + schedule,
                                     fmt::format("--microbatches={}", microbatches)});
      ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
      const double step_us = 100e3 * (microbatches + bubble) / microbatches;
      // The first step of a later stage has no end of a step before it.
      const std::vector<double> waits = numbers(program, "exposed_wait_us", 1), steps = numbers(program, "total_us", 1);
      EXPECT_NEAR(sum_of(steps) / static_cast<double>(steps.size()) / step_us, 1, 0.01) << schedule << microbatches;
      EXPECT_NEAR(sum_of(waits) / sum_of(steps), bubble / (microbatches + bubble), 0.01) << schedule << microbatches;
      for (const char* part : {"forward_us", "backward_us"}) {
        for (const double each : numbers(program, part)) EXPECT_GE(each, 0) << part;
      }
    }
  }
}

// Hundreds of workers, of a model that is known by its profile alone.
// Over links that cost a third of a step and more, with replicas, and with a tensor that two stages share.
TEST(Pipeline, TakesAsLongAsItsClosedForm) {
  const Flags text{"--model=gpt:4-4-64", "--dataset=grammar", "--batch-size=4", "--compute=50ms"};
  const Flags uneven{"--model=mlp:784-512-512-512-512-10", "--batch-size=64", "--compute=50ms"};
  for (const auto& [job, link] : {std::pair(text, "100mbit+100us"), {text, "10gbit+20us"}, {uneven, "200mbit+1ms"}}) {
    for (const Flags& way : {Flags{"--pipeline=2", "--microbatches=4"}, Flags{"--pipeline=4", "--microbatches=8"},
                             Flags{"--pipeline=4", "--microbatches=4", "--pipeline-schedule=gpipe"},
                             Flags{"--pipeline=2", "--microbatches=4", "--pipeline-schedule=interleaved"},
                             Flags{"--pipeline=4", "--microbatches=8", "--pipeline-schedule=zero-bubble"},
                             Flags{"--pipeline=2", kStashing}, Flags{"--pipeline=4", kStashing}}) {
      if (job == text && way.back() == kStashing) continue;  // its stages share a tensor
      Program program((way.back() == kStashing ? kLong : kSmall) + job + way +
                      Flags{"--mode=allreduce", "--cluster=simulated", "--workers=4", fmt::format("--shape={}", link)});
      ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
      const std::string report = run_program({"why", program.output().string()}).out;
      std::smatch share;
      ASSERT_TRUE(std::regex_search(report, share, std::regex("measured is ([0-9]+) % of it"))) << report;
      EXPECT_NEAR(std::stod(share[1]), 100, 6) << fmt::format("{}", fmt::join(job + way, " ")) << " " << link;
      if (way.back() != kStashing) EXPECT_THAT(report, HasSubstr("pipeline bubble"));
    }
  }
}

// A stage has a step of two passes, and never waits for the end of one.
TEST(Pipeline, HasNoBubbleAndStalenessByItsStageWhereWeightsAreStashed) {
  const Flags job = kLong + Flags{"--mode=allreduce", "--model=mlp:784-784-784-784-784-784-784-784-784-10",
                                  "--batch-size=8",   "--cluster=simulated",
                                  "--compute=100ms",  "--shape=400gbit+1us",
                                  "--workers=8",      "--pipeline=4",
                                  kStashing};
  Program program(job);
  ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
  // Between the steps that fill the pipeline and the one that empties it.
  constexpr int kFilled = 8, kLast = 39;
  const std::vector<double> step = numbers(program, "step"), worker = numbers(program, "worker"),
                            took = numbers(program, "total_us"), stale = numbers(program, "staleness_mean");
  double sum = 0, count = 0;
  std::map<int, std::set<double>> of_stages;
  for (std::size_t i = 0; i < step.size(); ++i) {
    if (step[i] < kFilled || step[i] >= kLast) continue;
    sum += took[i];
    ++count;
    of_stages[static_cast<int>(worker[i]) / 2].insert(stale[i]);
  }
  EXPECT_NEAR(sum / count / 100e3, 1, 0.01);
  for (int stage = 0; stage < 4; ++stage) EXPECT_THAT(of_stages[stage], testing::ElementsAre(3 - stage));
}

TEST(Pipeline, LearnsWhereWeightsAreStashed) {
  for (const char* wire : {"--transport=shm", "--transport=sockets"}) {
    Program program({"--mode=allreduce", "--workers=4", "--pipeline=2", kStashing, "--model=mlp:784-64-64-64-10", wire,
                     "--train-samples=4096", "--test-samples=512", "--epochs=3", "--batch-size=16"});
    ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
    EXPECT_GT(program.summary()["final_test_accuracy"], 0.8);
  }
}

// What is asynchronous follows no curve.
TEST(Pipeline, IsNotHeldAgainstTheOthersWhereWeightsAreStashed) {
  Program program({"compare", "--modes=allreduce,allreduce:pipeline:2", "--vary=pipeline-schedule=pipedream,1f1b",
                   "--workers=2", "--model=mlp:784-16-16-16-10", "--train-samples=512", "--test-samples=128",
                   "--steps=20", "--repeat=1"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("ps:sync and allreduce:pipeline:2 follow the same curve"));
}

TEST(Pipeline, StashesNoWeightsThatStagesShare) {
  const ProgramEnd end = run_program(
      {"--mode=allreduce", "--workers=2", "--pipeline=2", kStashing, "--model=gpt:2-2-16", "--dataset=grammar"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("the first and the last stage of --model=gpt:2-2-16 share a tensor"));
}

TEST(Pipeline, RunsAProfileOnManyWorkers) {
  Program program({"--mode=allreduce", "--cluster=simulated", "--model=profile:gpt2-medium", "--compute=200ms",
                   "--shape=100gbit+1us", "--workers=128", "--pipeline=8", "--microbatches=32", "--batch-size=4",
                   "--steps=4", "--warmup-steps=1"});
  ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
  const std::vector<double> steps = numbers(program, "total_us");
  EXPECT_GT(sum_of(steps) / static_cast<double>(steps.size()), 200e3 * 39 / 32);
  for (const double samples : numbers(program, "samples")) EXPECT_TRUE(samples == 0 || samples == 32) << samples;
}

// Under adam 16 bytes for each parameter of its stage alone, and 4 more for the gradients of one microbatch.
TEST(Pipeline, HoldsItsStageAlone) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's memory is counted, too";
  constexpr double kLayer = 2048 * 2048, kAll = 784 * 2048 + 4 * kLayer;
  const double whole = std::ranges::min(peaks_of({"--workers=2"}));
  for (const auto& [microbatches, bytes] : {std::pair{1, 16}, {4, 20}}) {
    // A stage of one layer. The first has all weights at the end.
    const double stage =
        std::ranges::min(peaks_of({"--workers=4", "--pipeline=4", fmt::format("--microbatches={}", microbatches)}));
    EXPECT_NEAR((whole - stage) / (16 * kAll - bytes * kLayer), 1, 0.08) << microbatches;
  }
  // Two layers, which have another stage's between them, or none.
  const Flags two{"--workers=2", "--pipeline=2", "--microbatches=4"};
  const double together = std::ranges::min(peaks_of(two)),
               apart = std::ranges::min(peaks_of(two + Flags{"--pipeline-schedule=interleaved"}));
  EXPECT_LT(apart / together, 1.1) << "what is being sent takes memory, more or less of it";
}

TEST(Pipeline, GoesOnFromItsCheckpointWithTheSameBitsAndWithOtherStages) {
  const Flags job{"--mode=allreduce",           "--model=mlp:784-32-32-32-10",
                  "--train-samples=2000",       "--test-samples=100",
                  "--evaluate-every=100epochs", "--workers=4",
                  "--optimizer=adam",           "--batch-size=16"};
  const Flags two{"--pipeline=2", "--microbatches=4"};
  const Flags chunked = two + Flags{"--pipeline-schedule=interleaved"};
  for (const Flags& begun : {two, chunked}) {
    Program whole(job + begun + Flags{"--steps=20"});
    ASSERT_EQ(whole.wait().exit_code, 0) << whole.errors();
    Program first(job + begun + Flags{"--steps=10", "--checkpoint-every=5"});
    ASSERT_EQ(first.wait().exit_code, 0) << first.errors();
    for (const Flags& way : {two, chunked, Flags{"--pipeline=4"}, Flags{"--pipeline=1"}}) {
      Program second(job + way + Flags{"--steps=20", "--resume=" + first.output().string()});
      ASSERT_EQ(second.wait().exit_code, 0) << second.errors();
      EXPECT_LE(greatest_gap(second.weights(), whole.weights()), way == begun ? 0 : 1e-5)
          << begun.back() << " " << way.back();
    }
  }
}

// Running moments are with the workers of a layer's stage: their mean is what is evaluated, and no other stages go on.
TEST(Pipeline, EvaluatesBatchNormsByTheMomentsOfTheirStages) {
  const Flags job{
      "--model=resnet20",   "--dataset=patterns",         "--image-size=8",      "--classes=4", "--train-samples=640",
      "--test-samples=200", "--evaluate-every=100epochs", "--learning-rate=0.01"};
  const Flags staged_job = job + Flags{"--mode=allreduce", "--workers=2", "--batch-size=16"};
  Program whole(job + Flags{"--mode=local", "--batch-size=32", "--steps=40"});
  ASSERT_EQ(whole.wait(std::chrono::seconds(120) * kSlowness).exit_code, 0) << whole.errors();
  Program staged(staged_job + Flags{"--steps=40", "--pipeline=2", "--microbatches=1", "--checkpoint-every=20"});
  ASSERT_EQ(staged.wait(std::chrono::seconds(120) * kSlowness).exit_code, 0) << staged.errors();
  // Weights and running moments are in the model's file.
  EXPECT_LT(greatest_gap(staged.weights(), whole.weights()), 1e-4);
  // Each stage has its own also where a run of another kind goes on: forty steps more, of other samples.
  std::vector<std::vector<float>> later;
  for (const Flags& way : {Flags{}, Flags{"--shuffle=off"}}) {
    Program again(staged_job + way +
                  Flags{"--steps=80", "--pipeline=2", "--microbatches=1", "--resume=" + staged.output().string()});
    ASSERT_EQ(again.wait(std::chrono::seconds(120) * kSlowness).exit_code, 0) << again.errors();
    later.push_back(again.weights());
  }
  EXPECT_LT(greatest_gap(later[0], later[1]), 0.25 * greatest_gap(later[0], std::vector<float>(later[0].size())));
  const ProgramEnd other = run_program(staged_job + Flags{"--steps=60", "--resume=" + staged.output().string()});
  EXPECT_NE(other.exit_code, 0);
  EXPECT_THAT(other.err + other.out, HasSubstr("--pipeline is 2 there"));
}

TEST(Pipeline, EndsWithTheVerdictOnTheWorkerThatIsLost) {
  for (const std::string wire : {"shm", "sockets"}) {
    Program program({"--mode=allreduce", "--workers=4", "--pipeline=2", "--epochs=500", "--train-samples=2000",
                     "--test-samples=100", "--timeout=10", "--transport=" + wire, "--fault=kill:worker3@step20"});
    const ProgramEnd end = program.wait();
    EXPECT_EQ(end.exit_code, 5) << wire << program.errors();
    EXPECT_THAT(program.errors(), HasSubstr("worker 3")) << wire;
  }
}

TEST(Pipeline, NamesAWorkerThatFallsSilent) {
  Program program({"--mode=allreduce", "--workers=2", "--pipeline=2", "--epochs=500", "--train-samples=2000",
                   "--test-samples=100", "--timeout=4", "--fault=stop:worker1@step20+60s"});
  const ProgramEnd end = program.wait();
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(program.errors(), HasSubstr("worker 1"));
}

TEST(Pipeline, SaysBeforeItRunsWhatEachStageHas) {
  const Flags job{"--mode=allreduce", "--workers=2", "--pipeline=2", "--model=mlp:784-64-64-64-10", "--dry-run"};
  EXPECT_THAT(run_program(job).out, HasSubstr("pipeline of 2 stages, cut by FLOPs\n"
                                              "  stage 0            dense1  200.96 kB  85.0 % of the computing\n"
                                              "  stage 1  dense2 to dense4   35.88 kB  15.0 % of the computing\n"));
  EXPECT_THAT(run_program(job + Flags{"--pipeline-schedule=interleaved"}).out,
              HasSubstr("  stage 0  dense1, dense3  217.60 kB  "));
}

TEST(Pipeline, SaysThatAModelHasTooFewLayers) {
  const ProgramEnd end = run_program({"--mode=allreduce", "--workers=8", "--pipeline=8", "--model=mlp"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err,
              HasSubstr("--pipeline=8: --model=mlp: has 3 layers that a stage can begin with, and cannot be cut "
                        "into 8 stages; 3 at most"));
  const ProgramEnd chunked =
      run_program({"--mode=allreduce", "--workers=2", "--pipeline=2", "--pipeline-schedule=interleaved"});
  EXPECT_EQ(chunked.exit_code, 2);
  EXPECT_THAT(chunked.err, HasSubstr("--pipeline=2 --pipeline-chunks=2: --model=mlp: has 3 layers that a chunk can "
                                     "begin with, and cannot be cut into 4 chunks; 3 at most"));
}

}  // namespace
}  // namespace syncopate::testing_support::pipeline_runs
