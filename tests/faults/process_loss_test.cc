// Processes that are killed or hang, and what becomes of the run.
#include "tests/faults/failing_run.h"

namespace syncopate::experiments {
namespace {

using testing::ContainsRegex;
using testing::MatchesRegex;
using testing::SizeIs;

struct Loss {
  const char* name;
  Flags mode;
  int workers;
  const char* role;
  int rank;
};

void PrintTo(const Loss& loss, std::ostream* out) { *out << loss.name; }

const Flags kRing{"--mode=allreduce", "--workers=3"};
const Flags kAsyncGossip{"--mode=allreduce", "--gossip=async", "--workers=4"};
const Flags kPsSync{"--mode=ps", "--consistency=sync", "--workers=2", "--servers=2"};
const Flags kPsAsync{"--mode=ps", "--consistency=async", "--workers=2", "--servers=2"};
const Flags kPsBounded{"--mode=ps", "--consistency=bounded:2", "--workers=3", "--servers=1"};
const Flags kPsSoftSync{"--mode=ps", "--consistency=softsync:2", "--workers=3", "--servers=1"};
const Flags kPsBackedUp{"--mode=ps", "--consistency=sync", "--backup-workers=1", "--workers=3", "--servers=2"};
const Flags kPsLocalSgd{"--mode=ps", "--consistency=local-sgd:4", "--workers=2", "--servers=1"};
const Flags kPsEasgd{"--mode=ps", "--consistency=easgd:4", "--workers=3", "--servers=1"};
const Flags kRingUnderMpirun{"--mode=allreduce", "--workers=2", "--launcher=mpirun"};
const Flags kPsUnderMpirun{"--mode=ps", "--consistency=async", "--workers=2", "--servers=1", "--launcher=mpirun"};
const Flags kMpi{"--mode=allreduce", "--workers=2", "--launcher=mpirun", "--collective=mpi"};

class LossTest : public testing::TestWithParam<Loss> {
 protected:
  void SetUp() override {
    if (testing_support::kSanitized && std::ranges::count(GetParam().mode, "--collective=mpi") > 0) {
      GTEST_SKIP() << testing_support::kWhyNoMpi;
    }
  }

  // Starts the run and, once all workers train, sends `signal` to the process that is to be lost.
  void lose_by(int signal, const std::string& amount = kWithoutEnd) {
    program_.emplace(training(GetParam().mode, amount));
    victim_ = program_->process(GetParam().role, GetParam().rank);
    ASSERT_NE(victim_, 0);
    ASSERT_TRUE(program_->wait_until_training(GetParam().workers));
    kill(victim_, signal);
  }
  // How lines about it begin.
  std::string the_victim() const { return naming(name_of_process(GetParam().role, GetParam().rank), victim_); }

  std::optional<Program> program_;

 private:
  pid_t victim_ = 0;
};

const auto kNameOfLoss = [](const auto& loss) { return loss.param.name; };

class FatalLoss : public LossTest {};

INSTANTIATE_TEST_SUITE_P(Of, FatalLoss,
                         testing::Values(Loss{"AWorkerOfTheRing", kRing, 3, "worker", 1},
                                         Loss{"TheChiefOfTheRing", kRing, 3, "worker", 0},
                                         Loss{"AnActiveWorkerOfAsyncGossip", kAsyncGossip, 4, "worker", 2},
                                         Loss{"APassiveWorkerOfAsyncGossip", kAsyncGossip, 4, "worker", 1},
                                         Loss{"AServerOfPsSync", kPsSync, 2, "server", 1},
                                         Loss{"AServerOfPsAsync", kPsAsync, 2, "server", 0},
                                         Loss{"TheOnlyWorker", {"--mode=local"}, 1, "worker", 0}),
                         kNameOfLoss);

TEST_P(FatalLoss, ByKillEndsTheRunAndIsNamed) {
  ASSERT_NO_FATAL_FAILURE(lose_by(SIGKILL));
  expect_verdict(*program_, ExitCode::kProcessLost, the_victim() + "was killed by signal 9 \\(Killed\\)");
}

TEST_P(FatalLoss, BySilenceEndsTheRunInTimeAndIsNamed) {
  ASSERT_NO_FATAL_FAILURE(lose_by(SIGSTOP));
  expect_verdict(*program_, ExitCode::kTimeout, the_victim() + "has stopped answering");
}

class LossUnderMpirun : public LossTest {};

INSTANTIATE_TEST_SUITE_P(Of, LossUnderMpirun,
                         testing::Values(Loss{"AWorkerOfTheRing", kRingUnderMpirun, 2, "worker", 1},
                                         Loss{"AServer", kPsUnderMpirun, 2, "server", 0},
                                         Loss{"AWorkerOfMpi", kMpi, 2, "worker", 1}),
                         kNameOfLoss);

// mpirun alone knows how they ended.
TEST_P(LossUnderMpirun, ByKillEndsTheRunAndIsNamed) {
  ASSERT_NO_FATAL_FAILURE(lose_by(SIGKILL));
  expect_verdict(*program_, ExitCode::kProcessLost, the_victim() + "is gone");
}

TEST_P(LossUnderMpirun, BySilenceEndsTheRunInTimeAndIsNamed) {
  ASSERT_NO_FATAL_FAILURE(lose_by(SIGSTOP));
  expect_verdict(*program_, ExitCode::kTimeout, the_victim() + "has stopped answering");
}

class SurvivedLoss : public LossTest {};

// Long enough for a loss to fall within it.
constexpr const char* kSomeSeconds = testing_support::kSanitized ? "--steps=4000" : "--steps=16000";

INSTANTIATE_TEST_SUITE_P(Of, SurvivedLoss,
                         testing::Values(Loss{"AWorkerOfPsAsync", kPsAsync, 2, "worker", 1},
                                         Loss{"TheChiefOfPsAsync", kPsAsync, 2, "worker", 0},
                                         Loss{"AWorkerOfPsBounded", kPsBounded, 3, "worker", 2},
                                         Loss{"TheChiefOfPsBounded", kPsBounded, 3, "worker", 0},
                                         Loss{"AWorkerOfPsSoftSync", kPsSoftSync, 3, "worker", 1},
                                         Loss{"AWorkerOfPsSync", kPsSync, 2, "worker", 1},
                                         Loss{"TheChiefOfPsLocalSgd", kPsLocalSgd, 2, "worker", 0},
                                         Loss{"AWorkerOfPsSyncWithABackup", kPsBackedUp, 3, "worker", 1},
                                         Loss{"TheChiefOfPsEasgd", kPsEasgd, 3, "worker", 0}),
                         kNameOfLoss);

TEST_P(SurvivedLoss, IsReportedAndTheOthersFinish) {
  ASSERT_NO_FATAL_FAILURE(lose_by(SIGKILL, kSomeSeconds));
  const ProgramEnd end = program_->wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(program_->processes(), testing::IsEmpty());
  const std::string report = the_victim() + "was killed by signal 9 \\(Killed\\); .* on";
  EXPECT_THAT(end.err, MatchesRegex(report + "\n"));
  const nlohmann::json summary = program_->summary();
  EXPECT_EQ(summary["outcome"], "completed");
  ASSERT_THAT(summary["events"], SizeIs(1));
  EXPECT_THAT(summary["events"][0].get<std::string>(), MatchesRegex(report));
  EXPECT_THAT(program_->weights(), SizeIs(kParameters));
  EXPECT_GT(summary["final_test_accuracy"], 0.5);
}

// A worker that hangs is as good as dead: it is killed, and the others go on.
TEST_P(SurvivedLoss, BySilenceIsReportedAndTheOthersFinish) {
  ASSERT_NO_FATAL_FAILURE(lose_by(SIGSTOP, kSomeSeconds));
  const ProgramEnd end = program_->wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(program_->processes(), testing::IsEmpty());
  // Others may end before the silence is noticed: then nobody is there to train what the victim had drawn.
  EXPECT_THAT(end.err, MatchesRegex(the_victim() + "has stopped answering; .* on\n" +
                                    "([0-9]+ of the job's [0-9]+ batches were not trained: .*\n)?"));
  EXPECT_THAT(program_->weights(), SizeIs(kParameters));
}

}  // namespace
}  // namespace syncopate::experiments
