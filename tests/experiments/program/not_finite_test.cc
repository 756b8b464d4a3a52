// Runs in which something becomes NaN: who says so, how they end, and what is left to go on from.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "common/finite.h"
#include "experiments/checkpoint/checkpoint_store.h"
#include "experiments/cluster/exit_code.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::run_program;
using testing_support::operator+;

using Flags = std::vector<std::string>;

constexpr int kEndedByNan = static_cast<int>(ExitCode::kNotFinite);

const Flags kHealthModel{"--batch-size=32", "--train-samples=2000", "--test-samples=200", "--model=mlp:784-64-10"};
const Flags kHealthJob = kHealthModel + Flags{"--optimizer=sgd", "--learning-rate=0.1"};

struct HealthMode {
  const char* name;
  Flags flags;
  int workers;
};

const HealthMode kHealthModes[] = {
    {"local", {"--mode=local"}, 1},
    {"allreduce", {"--mode=allreduce", "--workers=2"}, 2},
    {"ring", {"--mode=allreduce", "--workers=2", "--collective=ring", "--transport=sockets"}, 2},
    {"sync", {"--mode=ps", "--consistency=sync", "--workers=2", "--servers=2"}, 2},
    {"async", {"--mode=ps", "--workers=2", "--work=quota"}, 2},
    {"simulated", {"--mode=allreduce", "--workers=2", "--cluster=simulated", "--compute=1ms"}, 2},
};

class NotFiniteIn : public testing::TestWithParam<HealthMode> {
 protected:
  int last_worker() const { return GetParam().workers - 1; }
  Flags planted(const char* on_nan) const {
    return GetParam().flags + kHealthJob +
           Flags{"--steps=60", fmt::format("--fault=nan:worker{}@step30", last_worker()),
                 fmt::format("--on-nan={}", on_nan)};
  }
};

INSTANTIATE_TEST_SUITE_P(NotFinite, NotFiniteIn, testing::ValuesIn(kHealthModes),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(NotFiniteIn, StopsBeforeOthersSeeItAndNamesStepWorkerAndTensor) {
  Program program(planted("stop"));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, kEndedByNan) << end.err;
  EXPECT_THAT(end.err, HasSubstr(fmt::format("step 30: on worker {} the gradient of dense1.weight is nan (loss ",
                                             last_worker())));
  const nlohmann::json summary = program.summary();
  EXPECT_EQ(summary["not_finite"]["first"]["step"], 30);
  EXPECT_EQ(summary["not_finite"]["first"]["process"], fmt::format("worker {}", last_worker()));
  EXPECT_EQ(summary["not_finite"]["first"]["tensor"], "dense1.weight");
  EXPECT_THAT(summary["outcome"].get<std::string>(), HasSubstr("--on-nan=stop"));
}

TEST_P(NotFiniteIn, LeavesTheStepOutOnAllAndEndsWell) {
  Program program(planted("skip"));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const nlohmann::json summary = program.summary();
  EXPECT_EQ(summary["not_finite"]["left_out_steps"], 1);
  EXPECT_EQ(summary["not_finite"]["first"]["quantity"], "gradient");
  EXPECT_TRUE(all_finite(program.weights()));
  EXPECT_GT(program.weights().size(), 0u);
  EXPECT_GT(summary["final_test_accuracy"].get<double>(), 0.2);
}

TEST_P(NotFiniteIn, GoesOnWithAWarningWhereThatIsAskedFor) {
  Program program(planted("go-on"));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out + end.err, HasSubstr("--on-nan=go-on"));
  EXPECT_FALSE(all_finite(program.weights()));
  EXPECT_EQ(program.summary()["not_finite"]["first"]["step"], 30);
}

// Under all of these a step is one of all workers, of the mean of the same batches.
TEST(NotFinite, ASkippedStepIsTheSameInAllSynchronousModes) {
  std::vector<std::vector<float>> weights;
  for (const Flags& mode :
       {Flags{"--mode=allreduce", "--collective=direct"}, Flags{"--mode=ps", "--consistency=sync"}}) {
    Program program(mode + kHealthModel +
                    Flags{"--workers=2", "--optimizer=adam", "--learning-rate=0.001", "--steps=40",
                          "--fault=nan:worker1@step20", "--on-nan=skip"});
    const ProgramEnd end = program.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    weights.push_back(program.weights());
  }
  EXPECT_GT(weights[0].size(), 0u);
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(NotFinite, OfARateThatNothingStandsEndsTheRun) {
  Program program({"--mode=allreduce", "--workers=2", "--optimizer=sgd", "--learning-rate=30",
                   "--lr-schedule=warmup:20", "--epochs=20", "--train-samples=6000", "--test-samples=1000"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, kEndedByNan) << end.err;
  EXPECT_THAT(end.err, ContainsRegex("step [0-9]+: on worker [01] the gradient of [a-z0-9.]+ is (nan|-?inf)"));
}

TEST(NotFinite, KeepsTheLastFiniteCheckpointAndGoesOnFromIt) {
  Program program(kHealthJob + Flags{"--mode=local", "--steps=60", "--checkpoint-every=30", "--keep=1",
                                     "--fault=nan:worker0@step30", "--on-nan=go-on"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const CheckpointStore store((program.output() / "checkpoints").string());
  EXPECT_THAT(store.steps(), testing::ElementsAre(60, 30));
  const Flags again = kHealthJob + Flags{"--mode=local", "--steps=70"};
  Program resumed(again + Flags{"--resume=" + program.output().string()});
  const ProgramEnd resumed_end = resumed.wait();
  EXPECT_EQ(resumed_end.exit_code, 0) << resumed_end.err;
  EXPECT_THAT(resumed_end.err, HasSubstr("step-000060 is passed over: holds values that are NaN or infinite"));
  EXPECT_EQ(resumed.summary()["resumed_from"]["step"], 30);
  EXPECT_TRUE(all_finite(resumed.weights()));
  const ProgramEnd refused = run_program(again + Flags{"--resume=" + store.path_of(60)});
  EXPECT_EQ(refused.exit_code, static_cast<int>(ExitCode::kData));
  EXPECT_THAT(refused.err, HasSubstr("NaN or infinite"));
}

TEST(NotFinite, NamesTheLastFiniteCheckpointWhereItEndsARun) {
  Program program(kHealthJob + Flags{"--mode=local", "--steps=300", "--checkpoint-every=10", "--straggler=0:+5",
                                     "--fault=nan:worker0@step200"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, kEndedByNan);
  EXPECT_THAT(end.err, ContainsRegex("the last finite checkpoint is .*/step-000[012]"));
}

TEST(NotFinite, IsSaidOfWeightsThatAreEvaluated) {
  Program program(kHealthJob + Flags{"--mode=local", "--steps=60", "--fault=nan:worker0@step30", "--on-nan=go-on"});
  ASSERT_EQ(program.wait().exit_code, 0);
  const ProgramEnd end = run_program({"evaluate", program.output().string()});
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kData));
  EXPECT_THAT(end.err, ContainsRegex("the weights of dense1.weight hold nan"));
  EXPECT_THAT(end.out, Not(HasSubstr("accuracy")));
}

TEST(NotFinite, StepsAreNotSkippedWhereTheyCannotBe) {
  const std::pair<Flags, const char*> refusals[] = {
      {{"--mode=allreduce", "--gossip=async", "--workers=2"}, "each worker makes steps of its own"},
      {{"--mode=ps", "--consistency=local-sgd:4", "--workers=2"}, "each worker makes steps of its own"},
      {{"--mode=ps", "--consistency=sync", "--backup-workers=1", "--workers=3"}, "--backup-workers=1"},
      {{"--mode=allreduce", "--compress=topk:0.1", "--workers=2"}, "--compress=topk:0.1"},
      {{"--mode=allreduce", "--compress=sign", "--workers=2"}, "--compress=sign"},
      {{"--model=ncf", "--dataset=zipf-ratings"}, "--embeddings=dense"},
  };
  for (const auto& [flags, why] : refusals) {
    const ProgramEnd end = run_program(flags + Flags{"--on-nan=skip"});
    EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kUsage)) << why;
    EXPECT_THAT(end.err, AllOf(HasSubstr("--on-nan=skip: "), HasSubstr(why)));
  }
}

TEST(NotFinite, IsSeenThroughEveryCodec) {
  for (const char* codec : {"fp16", "bf16", "int8", "topk:0.01", "sign", "powersgd:1"}) {
    Program program(kHealthJob + Flags{"--mode=allreduce", "--workers=2", "--steps=40", "--fault=nan:worker1@step20",
                                       fmt::format("--compress={}", codec)});
    const ProgramEnd end = program.wait();
    EXPECT_EQ(end.exit_code, kEndedByNan) << codec << end.err;
    EXPECT_THAT(end.err, HasSubstr("step 20: on worker 1 the gradient of dense1.weight is nan")) << codec;
  }
}

TEST(NotFinite, ClaimsNothingOfAProfile) {
  Program program({"--mode=allreduce", "--workers=2", "--cluster=simulated", "--model=profile:resnet50",
                   "--compute=100ms", "--steps=20"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_TRUE(program.summary()["not_finite"].is_null());
  const ProgramEnd planted = run_program({"--mode=allreduce", "--workers=2", "--cluster=simulated",
                                          "--model=profile:resnet50", "--compute=100ms", "--fault=nan:worker0@step3"});
  EXPECT_EQ(planted.exit_code, static_cast<int>(ExitCode::kUsage));
  EXPECT_THAT(planted.err, HasSubstr("a profile computes none"));
}

TEST(NotFinite, WordsOnWhatWasLearntFollowTheFigures) {
  Program program(kHealthModel +
                  Flags{"--mode=local", "--optimizer=sgd", "--learning-rate=1e-9", "--steps=20", "--seed=3"});
  ASSERT_EQ(program.wait().exit_code, 0);
  const nlohmann::json summary = program.summary();
  const double accuracy = summary["final_test_accuracy"];
  const std::string words = fmt::format(
      "a test accuracy of {:.2f} % of 200 labels cannot be told from guessing among 10 classes", 100 * accuracy);
  EXPECT_EQ(summary["events"].dump().find(words) != std::string::npos, accuracy <= 0.1 + 2 * std::sqrt(0.09 / 200));
  EXPECT_TRUE(summary["first_train_loss"].is_number());
}

}  // namespace
}  // namespace syncopate::experiments
