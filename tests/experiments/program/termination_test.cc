// SIGTERM, which schedulers send some time before they kill: a run with checkpoints takes a last one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "experiments/checkpoint/checkpoint_store.h"
#include "tests/faults/failing_run.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing_support::run_program;
using testing_support::TemporaryFolder;
using testing_support::text_of;

const Flags kNoneIsDue{"--checkpoint-every=1000000000", "--grace=120"};

class Termination : public testing::Test {
 protected:
  // A run that goes on in this test's folder.
  Flags here(const Flags& more) const { return more + Flags{"--resume=auto", "--output=" + output_.string()}; }
  std::vector<std::int64_t> checkpoints() const { return CheckpointStore((output_ / "checkpoints").string()).steps(); }

  const TemporaryFolder folder_;
  const std::filesystem::path output_ = folder_.path() / "run";
};

// A run of this mode is ended by SIGTERM. Returns the step that it goes on from with the same command, up to 30 steps
// behind that.
class TerminationOf : public Termination, public testing::WithParamInterface<Flags> {
 protected:
  void SetUp() override {
    const Flags mode = GetParam() + kNoneIsDue;
    Program program(here(training(mode)));
    ASSERT_TRUE(program.wait_until_training(2));
    program.signal(SIGTERM);
    const ProgramEnd end = program.wait(std::chrono::seconds(120));
    EXPECT_EQ(end.exit_code, 143) << end.err;
    EXPECT_THAT(end.err, HasSubstr("run_experiment: ended by SIGTERM; a last checkpoint is kept, of step "));
    ASSERT_THAT(checkpoints(), testing::SizeIs(1));
    steps_ = "--steps=" + std::to_string(checkpoints().front() + 30);
    EXPECT_THAT(program.processes(), testing::IsEmpty());
    const nlohmann::json summary = nlohmann::json::parse(text_of(output_ / "summary.json"));
    EXPECT_THAT(summary.value("outcome", ""), HasSubstr("ended by SIGTERM"));
    const ProgramEnd second = run_program(here(training(mode, steps_)));
    EXPECT_EQ(second.exit_code, 0) << second.err;
    const nlohmann::json resumed = nlohmann::json::parse(text_of(output_ / "summary.json"));
    EXPECT_EQ("--steps=" + std::to_string(resumed["resumed_from"].value("step", 0) + 30), steps_);
  }

  std::string steps_;  // as an option
};

class TerminationOfWorkersInStep : public TerminationOf {};
class TerminationOfWorkersAtTheirOwnPace : public TerminationOf {};

std::string name_of_case(const testing::TestParamInfo<Flags>& info) {
  std::string name;
  for (const std::string& flag : info.param) {
    for (const char letter : flag) {
      if (std::isalnum(static_cast<unsigned char>(letter)) != 0) name += letter;
    }
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(By, TerminationOfWorkersInStep,
                         testing::Values(Flags{"--mode=allreduce", "--workers=2"},
                                         Flags{"--mode=allreduce", "--workers=2", "--sync-every=8"},
                                         Flags{"--mode=allreduce", "--workers=2", "--gossip"},
                                         Flags{"--mode=sharded", "--workers=2"},
                                         Flags{"--mode=sharded", "--workers=2", "--stage=3"},
                                         Flags{"--mode=ps", "--workers=2", "--servers=2", "--consistency=sync"},
                                         Flags{"--mode=ps", "--workers=2", "--servers=colocated", "--consistency=sync"},
                                         Flags{"--mode=hybrid", "--workers=2", "--servers=2", "--model=ncf:8",
                                               "--dataset=zipf-ratings", "--table-rows=500"},
                                         Flags{"--mode=ps", "--workers=2", "--consistency=local-sgd:8"}),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(By, TerminationOfWorkersAtTheirOwnPace,
                         testing::Values(Flags{"--mode=ps", "--workers=2", "--servers=2"},
                                         Flags{"--mode=ps", "--workers=2", "--consistency=bounded:4"}),
                         name_of_case);

TEST_P(TerminationOfWorkersInStep, TakesALastCheckpointFromWhichTheRunComesToTheWeightsOfAnUnbrokenOne) {
  Program unbroken(training(GetParam(), steps_));
  ASSERT_EQ(unbroken.wait().exit_code, 0);
  EXPECT_EQ(text_of(output_ / "model.safetensors"), text_of(unbroken.output() / "model.safetensors"));
}

TEST_P(TerminationOfWorkersAtTheirOwnPace, TakesALastCheckpointFromWhichTheRunGoesOn) {
  EXPECT_GT(text_of(output_ / "model.safetensors").size(), kParameters * sizeof(float));
}

TEST_F(Termination, InTheTimeOfAnIntervalIsOfTheStepThatItComesTo) {
  Program program(here(training({"--mode=allreduce", "--workers=2", "--checkpoint-every=3600s", "--grace=120"})));
  ASSERT_TRUE(program.wait_until_training(2));
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait(std::chrono::seconds(120)).exit_code, 143);
  EXPECT_THAT(checkpoints(), testing::SizeIs(1));
}

// Worker 1 is stopped, and with it everybody: no checkpoint can be taken.
class TerminationOfAStoppedRun : public Termination {
 protected:
  void begin(const std::string& grace) {
    program_ = std::make_unique<Program>(
        here(training({"--mode=allreduce", "--workers=2", "--checkpoint-every=1000000000", grace}, kWithoutEnd, 120)));
    ASSERT_TRUE(program_->wait_until_training(2));
    const pid_t worker = program_->process("worker", 1);
    ASSERT_GT(worker, 0);
    kill(worker, SIGSTOP);
    program_->signal(SIGTERM);
  }
  // It ends with 130, without a checkpoint.
  std::string end() {
    const ProgramEnd end = program_->wait(kDeadline);
    EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kInterrupted)) << end.err;
    EXPECT_THAT(end.err, HasSubstr("interrupted at step"));
    EXPECT_THAT(checkpoints(), testing::IsEmpty());
    return end.err;
  }

  std::unique_ptr<Program> program_;
};

TEST_F(TerminationOfAStoppedRun, EndsWhenTheGraceTimeIsOver) {
  begin("--grace=0.5");
  EXPECT_THAT(end(), HasSubstr("no last checkpoint was complete within --grace=0.5"));
}

TEST_F(TerminationOfAStoppedRun, EndsAtOnceWhenAskedAgain) {
  begin("--grace=3600");
  ASSERT_TRUE(program_->wait_until("it has heard of it", [&] {
    return program_->errors().find("SIGTERM: ends after a last checkpoint, within 3600 s") != std::string::npos;
  }));
  program_->signal(SIGINT);
  EXPECT_THAT(end(), Not(HasSubstr("no last checkpoint was complete")));
}

TEST_F(TerminationOfAStoppedRun, WithoutGraceEndsAtOnce) {
  begin("--grace=0");
  EXPECT_THAT(end(), Not(HasSubstr("SIGTERM")));
}

TEST_F(Termination, OfARunWithoutCheckpointsEndsItAtOnce) {
  Program program(training({"--mode=allreduce", "--workers=2"}));
  ASSERT_TRUE(program.wait_until_training(2));
  program.signal(SIGTERM);
  const ProgramEnd end = program.wait(kDeadline);
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kInterrupted)) << end.err;
}

// Schedulers, and service managers, send it to all processes.
TEST_F(Termination, OfAllProcessesIsLeftToTheCoordinator) {
  Program program(here(training(Flags{"--mode=ps", "--workers=2"} + kNoneIsDue)));
  ASSERT_TRUE(program.wait_until_training(2));
  for (const auto& process : program.processes()) kill(process.pid, SIGTERM);
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait(std::chrono::seconds(120)).exit_code, 143);
  EXPECT_THAT(checkpoints(), testing::SizeIs(1));
}

TEST_F(Termination, ByCtrlCTakesNoCheckpoint) {
  Program program(here(training(Flags{"--mode=allreduce", "--workers=2"} + kNoneIsDue)));
  ASSERT_TRUE(program.wait_until_training(2));
  program.signal(SIGINT);
  const ProgramEnd end = program.wait(kDeadline);
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kInterrupted)) << end.err;
  EXPECT_THAT(checkpoints(), testing::IsEmpty());
}

TEST_F(Termination, GraceWithoutCheckpointsIsRefused) {
  const ProgramEnd end = run_program({"--mode=allreduce", "--grace=5"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("--grace=5"));
  EXPECT_THAT(end.err, HasSubstr("--checkpoint-every"));
}

}  // namespace
}  // namespace syncopate::experiments
