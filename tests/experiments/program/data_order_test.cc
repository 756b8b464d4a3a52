// Runs with another order of samples, and with a last batch that is not full: every mode does the same with them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::operator+;

using Flags = std::vector<std::string>;

// Two workers' batches of 16 have 32 samples: an epoch of 650 is 20 full global batches, and one of 10.
const Flags kOddSet{"--model=mlp:784-16-10", "--train-samples=650", "--test-samples=100", "--epochs=2"};

nlohmann::json summary_of_odd_set(const Flags& flags) {
  SCOPED_TRACE(fmt::format("{}", fmt::join(flags, " ")));
  Program program(kOddSet + flags);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  return program.summary();
}

TEST(DropLast, OffTrainsEachSampleOnceAnEpochInEveryMode) {
  const Flags two{"--workers=2", "--batch-size=16", "--drop-last=off"};
  for (const Flags& flags : {Flags{"--batch-size=32", "--drop-last=off"}, two + Flags{"--mode=allreduce"},
                             two + Flags{"--mode=ps", "--consistency=sync"}, two + Flags{"--mode=ps"},
                             two + Flags{"--mode=ps", "--work=quota"}, two + Flags{"--mode=allreduce", "--gossip"}}) {
    const nlohmann::json summary = summary_of_odd_set(flags);
    EXPECT_EQ(summary["steps_per_epoch"], 21);
    EXPECT_EQ(summary["total_samples"], 1300);
  }
  EXPECT_EQ(summary_of_odd_set({"--batch-size=32"})["steps_per_epoch"], 20);
  EXPECT_EQ(summary_of_odd_set({"--batch-size=32"})["total_samples"], 1280);
}

// The loss of a batch that is not full is the mean over the samples that it has.
TEST(DropLast, OffRecordsLossesAndAccuraciesOfTheSamplesThatThereAre) {
  const auto last_step = [](const Flags& flags) {
    Program program(kOddSet + Flags{"--drop-last=off"} + flags);
    const ProgramEnd end = program.wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
    const auto column = [&](const char* name) { return program.column("steps.csv", name); };
    const std::vector<std::string> steps = column("step"), sizes = column("samples"), losses = column("loss"),
                                   accuracies = column("accuracy");
    double samples = 0, loss = 0, correct = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i] != "20") continue;
      const double of_batch = std::stod(sizes[i]);
      samples += of_batch;
      loss += of_batch * std::stod(losses[i]);
      correct += of_batch * std::stod(accuracies[i]);
    }
    EXPECT_EQ(samples, 10);
    EXPECT_NEAR(correct, std::round(correct), 1e-3);
    return std::pair(loss / samples, correct);
  };
  const auto [loss, correct] = last_step({"--batch-size=32"});
  EXPECT_GT(loss, 0.1);
  const auto [loss_of_two, correct_of_two] = last_step({"--mode=allreduce", "--workers=2", "--batch-size=16"});
  EXPECT_NEAR(loss_of_two, loss, 1e-3 * loss);
  EXPECT_NEAR(correct_of_two, correct, 0.1);
}

// `compare` proves over its first 30 steps that synchronous modes follow one curve, or fails.
void expect_one_curve(const Flags& flags, const std::string& words) {
  Program program(Flags{"compare", "--modes=local,allreduce,ps:sync", "--workers=2", "--batch-size=16", "--repeat=1"} +
                  kOddSet + flags);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr(words));
}

TEST(DropLast, OffLeavesSynchronousModesOnOneCurve) {
  expect_one_curve({"--drop-last=off"}, "equality: local, allreduce and ps:sync follow the same curve");
}

TEST(Shuffle, LeavesSynchronousModesOnOneCurve) {
  expect_one_curve({"--shuffle=off"}, "equality: local, allreduce and ps:sync follow the same curve");
  expect_one_curve({"--shuffle=shard"}, "local is left out, which has no workers to divide the samples among");
  expect_one_curve({"--shuffle=worker"}, "local is left out, which has no workers to divide the samples among");
}

std::vector<float> weights_of_odd_set(const Flags& flags) {
  Program program(kOddSet + Flags{"--batch-size=16"} + flags);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  return program.weights();
}

TEST(DataOptions, ChangeWhatIsTrainedAndPrefetchDoesNot) {
  const std::vector<float> usual = weights_of_odd_set({});
  EXPECT_EQ(weights_of_odd_set({"--prefetch=1"}), usual);
  EXPECT_EQ(weights_of_odd_set({"--prefetch=100"}), usual);
  EXPECT_EQ(weights_of_odd_set({"--shuffle=shard"}), usual) << "one worker's shard is the whole set";
  for (const char* flag : {"--shuffle=off", "--drop-last=off", "--init=glorot", "--pixel-scale=unit"}) {
    EXPECT_NE(weights_of_odd_set({flag}), usual) << flag;
  }
}

std::string data_refusal(const Flags& flags) {
  Program program(kOddSet + flags);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 2);
  return end.err;
}

TEST(DataOptions, SayWhatTheyCannotStandBeside) {
  const Flags two{"--workers=2", "--batch-size=16", "--mode=allreduce"};
  EXPECT_THAT(data_refusal(two + Flags{"--drop-last=off", "--shuffle=shard"}), HasSubstr("--drop-last=off: "));
  EXPECT_THAT(data_refusal(two + Flags{"--drop-last=off", "--shard=labels"}), HasSubstr("--drop-last=off: "));
  EXPECT_THAT(data_refusal(two + Flags{"--shuffle=worker", "--shard=labels"}), HasSubstr("give one of the two"));
  EXPECT_THAT(data_refusal({"--mode=ps", "--shuffle=shard", "--work=quota"}),
              HasSubstr("--work=quota: has an effect only"));
  EXPECT_THAT(data_refusal({"--dataset=grammar", "--init=glorot"}), HasSubstr("--init=glorot: "));
}

}  // namespace
}  // namespace syncopate::experiments
