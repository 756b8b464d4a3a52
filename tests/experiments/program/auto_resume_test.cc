// --resume=auto: the same command, given again, goes on.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "experiments/checkpoint/checkpoint_store.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::run_program;
using testing_support::TemporaryFolder;
using testing_support::text_of;
using testing_support::operator+;

using Flags = std::vector<std::string>;

// An epoch has 20 steps.
const Flags kAutoResumeJob{"--batch-size=32", "--train-samples=640", "--test-samples=100", "--model=mlp:784-16-10",
                           "--checkpoint-every=1epoch"};

class AutoResumeTest : public testing::Test {
 protected:
  Flags here(const Flags& more) const {
    return kAutoResumeJob + Flags{"--resume=auto", "--output=" + path_.string()} + more;
  }
  // Runs the command to its end.
  ProgramEnd run(const Flags& more) const { return run_program(here(more)); }
  nlohmann::json summary() const { return nlohmann::json::parse(text_of(path_ / "summary.json"), nullptr, false); }
  std::vector<std::int64_t> checkpoints() const { return CheckpointStore((path_ / "checkpoints").string()).steps(); }

  const TemporaryFolder folder_;
  const fs::path path_ = folder_.path() / "run";
};

TEST_F(AutoResumeTest, BeginsThenGoesOnToTheWeightsOfAnUnbrokenRun) {
  const ProgramEnd first = run({"--epochs=1"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_FALSE(summary().contains("resumed_from") && !summary()["resumed_from"].is_null());
  EXPECT_THAT(checkpoints(), ElementsAre(20));
  const std::string steps = text_of(path_ / "steps.csv");
  const ProgramEnd second = run({"--epochs=3"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("going on in " + path_.string()));
  EXPECT_EQ(summary()["resumed_from"]["step"], 20);
  EXPECT_THAT(checkpoints(), ElementsAre(60, 40));
  EXPECT_EQ(text_of(path_ / "before-1/steps.csv"), steps) << "what the first run has left is kept";
  Program unbroken(kAutoResumeJob + Flags{"--epochs=3"});
  ASSERT_EQ(unbroken.wait().exit_code, 0);
  EXPECT_EQ(text_of(path_ / "model.safetensors"), text_of(unbroken.output() / "model.safetensors"));
}

TEST_F(AutoResumeTest, GoesOnAfterAKill) {
  {
    Program killed(here({"--steps=1000000"}));
    ASSERT_TRUE(killed.wait_until("a checkpoint is there", [&] { return !checkpoints().empty(); }));
    killed.signal(SIGKILL);
    killed.wait();
    ASSERT_TRUE(killed.all_gone_within(std::chrono::seconds(10)));
  }
  const std::int64_t step = checkpoints().front();
  const ProgramEnd end = run({fmt::format("--steps={}", step + 30)});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(summary()["resumed_from"]["step"], step);
}

TEST_F(AutoResumeTest, TrainsNothingOnceItIsDone) {
  ASSERT_EQ(run({"--epochs=2"}).exit_code, 0);
  const std::string model = text_of(path_ / "model.safetensors"), steps = text_of(path_ / "steps.csv");
  for (const char* epochs : {"--epochs=2", "--epochs=1"}) {
    const ProgramEnd again = run({epochs});
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_THAT(again.out,
                AllOf(HasSubstr("completed: 2 epochs; nothing is left to train"), Not(HasSubstr("epoch 1/"))));
  }
  EXPECT_EQ(text_of(path_ / "model.safetensors"), model);
  EXPECT_EQ(text_of(path_ / "steps.csv"), steps);
  EXPECT_FALSE(fs::exists(path_ / "before-1"));
}

TEST_F(AutoResumeTest, RefusesOtherSettingsByName) {
  ASSERT_EQ(run({"--epochs=1"}).exit_code, 0);
  const ProgramEnd other = run({"--epochs=2", "--seed=2", "--learning-rate=0.01"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, AllOf(HasSubstr("--learning-rate is 0.001 there and 0.01 here"),
                               HasSubstr("--seed is 1 there and 2 here")));
  EXPECT_FALSE(fs::exists(path_ / "before-1"));
  EXPECT_EQ(summary()["outcome"], "completed");
}

TEST_F(AutoResumeTest, LeavesFilesOfSomethingElseAlone) {
  fs::create_directory(path_);
  std::ofstream(path_ / "letter.txt") << "dear";
  const ProgramEnd end = run({"--epochs=1"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("holds files of something else than a run"));
  EXPECT_EQ(text_of(path_ / "letter.txt"), "dear");
}

TEST_F(AutoResumeTest, SaysThatACompletedRunHasNoCheckpoint) {
  ASSERT_EQ(run({"--epochs=1"}).exit_code, 0);
  fs::remove_all(path_ / "checkpoints");
  const ProgramEnd end = run({"--epochs=2"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("completed with 1 epoch, and no checkpoint to go on from"));
}

TEST_F(AutoResumeTest, BeginsAgainWhereAnUnfinishedRunHasNoCheckpoint) {
  ASSERT_EQ(run({"--epochs=1"}).exit_code, 0);
  fs::remove_all(path_ / "checkpoints");
  fs::remove(path_ / "summary.json");
  const ProgramEnd end = run({"--epochs=1"});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("beginning again in " + path_.string()));
  EXPECT_TRUE(fs::exists(path_ / "before-1/model.safetensors"));
  EXPECT_EQ(summary()["outcome"], "completed");
}

// Its results were not written after its last checkpoint.
TEST_F(AutoResumeTest, GoesBackByACheckpointWhereTheLastIsOfTheEnd) {
  ASSERT_EQ(run({"--epochs=2"}).exit_code, 0);
  const std::string model = text_of(path_ / "model.safetensors");
  fs::remove(path_ / "summary.json");
  fs::remove(path_ / "model.safetensors");
  const ProgramEnd end = run({"--epochs=2"});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(summary()["resumed_from"]["step"], 20);
  EXPECT_EQ(text_of(path_ / "model.safetensors"), model);
}

TEST_F(AutoResumeTest, LetsADryRunLookOnly) {
  const ProgramEnd first = run({"--epochs=1", "--dry-run"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_FALSE(fs::exists(path_));
  ASSERT_EQ(run({"--epochs=1"}).exit_code, 0);
  const ProgramEnd second = run({"--epochs=2", "--dry-run"});
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("going on in"));
  EXPECT_FALSE(fs::exists(path_ / "before-1"));
}

// In virtual time it is known which: servers whose workers go at their own pace are told when a worker has come so far,
// and here training is over by then.
TEST(CheckpointsOfEpochs, ThatAreLeftOutAreReportedAtTheEnd) {
  Program program(kAutoResumeJob +
                  Flags{"--cluster=simulated", "--compute=5ms", "--mode=ps", "--workers=2", "--epochs=2"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const nlohmann::json checkpoints = program.summary()["checkpoints"];
  EXPECT_EQ(checkpoints["asked"], 2);
  EXPECT_GE(checkpoints["left_out"], 1);
  EXPECT_THAT(end.out,
              HasSubstr(fmt::format("; {} left out: steps went by, or training ended, before they could be written",
                                    checkpoints["left_out"].get<int>())));
}

TEST(CheckpointsOfEpochs, AreTakenAfterEach) {
  for (const Flags& mode :
       {Flags{}, Flags{"--mode=allreduce", "--workers=2"}, Flags{"--mode=ps", "--consistency=sync", "--workers=2"}}) {
    Program program(kAutoResumeJob + mode + Flags{"--cluster=simulated", "--compute=50ms", "--epochs=3", "--keep=9"});
    const ProgramEnd end = program.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    const std::int64_t epoch = program.summary()["steps_per_epoch"];
    EXPECT_THAT(CheckpointStore((program.output() / "checkpoints").string()).steps(),
                ElementsAre(3 * epoch, 2 * epoch, epoch));
    EXPECT_EQ(program.summary()["checkpoints"]["left_out"], 0);
  }
}

}  // namespace
}  // namespace syncopate::experiments
