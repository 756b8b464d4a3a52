// Processes that are killed or hang, and what becomes of the run: here, some of each kind; in virtual time, the others.
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
  Place place = Place::kHere;
};

Loss in_virtual_time(Loss loss) {
  loss.place = Place::kVirtualTime;
  return loss;
}

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
const Flags kHybrid{"--mode=hybrid",          "--workers=3",     "--servers=2", "--model=ncf",
                    "--dataset=zipf-ratings", "--table-rows=500"};
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
    const Loss& loss = GetParam();
    if (loss.place == Place::kVirtualTime) {
      const char* kind = signal == SIGKILL ? "kill" : "stop";
      program_.emplace(training(loss.mode, amount == kWithoutEnd ? amount : kVirtualSteps) + kInVirtualTime +
                       Flags{fault_flag(kind, loss.role, loss.rank)});
      return;
    }
    program_.emplace(training(loss.mode, amount));
    victim_ = program_->process(loss.role, loss.rank);
    ASSERT_NE(victim_, 0);
    ASSERT_TRUE(program_->wait_until_training(loss.workers));
    kill(victim_, signal);
  }
  // How lines about it begin.
  std::string the_victim() const {
    const std::string name = name_of_process(GetParam().role, GetParam().rank);
    return GetParam().place == Place::kHere ? naming(name, victim_) : naming_in_virtual_time(name);
  }
  // The line that comes before: what --fault has done.
  std::string the_fault() const {
    if (GetParam().place == Place::kHere) return "";
    return fmt::format("fault: (killed|stopped) {} [^\n]*\n", name_of_process(GetParam().role, GetParam().rank));
  }

  std::optional<Program> program_;

 private:
  pid_t victim_ = 0;
};

const auto kNameOfLoss = [](const auto& loss) { return loss.param.name; };

class FatalLoss : public LossTest {};

INSTANTIATE_TEST_SUITE_P(Of, FatalLoss,
                         testing::Values(Loss{"AWorkerOfTheRing", kRing, 3, "worker", 1},
                                         Loss{"APassiveWorkerOfAsyncGossip", kAsyncGossip, 4, "worker", 1},
                                         Loss{"AServerOfPsAsync", kPsAsync, 2, "server", 0},
                                         Loss{"AWorkerOfAHybrid", kHybrid, 3, "worker", 2},
                                         Loss{"AServerOfAHybrid", kHybrid, 3, "server", 1},
                                         Loss{"TheOnlyWorker", {"--mode=local"}, 1, "worker", 0}),
                         kNameOfLoss);
INSTANTIATE_TEST_SUITE_P(InVirtualTime, FatalLoss,
                         testing::Values(in_virtual_time(Loss{"TheChiefOfTheRing", kRing, 3, "worker", 0}),
                                         in_virtual_time(Loss{"AnActiveWorkerOfAsyncGossip", kAsyncGossip, 4, "worker",
                                                              2}),
                                         in_virtual_time(Loss{"AServerOfPsSync", kPsSync, 2, "server", 1}),
                                         in_virtual_time(Loss{"TheChiefOfAHybrid", kHybrid, 3, "worker", 0}),
                                         in_virtual_time(Loss{"AServerOfAHybrid", kHybrid, 3, "server", 0})),
                         kNameOfLoss);

TEST_P(FatalLoss, ByKillEndsTheRunAndIsNamed) {
  ASSERT_NO_FATAL_FAILURE(lose_by(SIGKILL));
  expect_verdict(*program_, ExitCode::kProcessLost, the_victim() + "was killed by signal 9 \\(Killed\\)", the_fault());
}

TEST_P(FatalLoss, BySilenceEndsTheRunInTimeAndIsNamed) {
  ASSERT_NO_FATAL_FAILURE(lose_by(SIGSTOP));
  expect_verdict(*program_, ExitCode::kTimeout, the_victim() + "has stopped answering", the_fault());
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
                         testing::Values(Loss{"TheChiefOfPsAsync", kPsAsync, 2, "worker", 0},
                                         Loss{"AWorkerOfPsSync", kPsSync, 2, "worker", 1}),
                         kNameOfLoss);
INSTANTIATE_TEST_SUITE_P(InVirtualTime, SurvivedLoss,
                         testing::Values(in_virtual_time(Loss{"AWorkerOfPsAsync", kPsAsync, 2, "worker", 1}),
                                         in_virtual_time(Loss{"AWorkerOfPsBounded", kPsBounded, 3, "worker", 2}),
                                         in_virtual_time(Loss{"TheChiefOfPsBounded", kPsBounded, 3, "worker", 0}),
                                         in_virtual_time(Loss{"AWorkerOfPsSoftSync", kPsSoftSync, 3, "worker", 1}),
                                         in_virtual_time(Loss{"TheChiefOfPsLocalSgd", kPsLocalSgd, 2, "worker", 0}),
                                         in_virtual_time(Loss{"AWorkerOfPsSyncWithABackup", kPsBackedUp, 3, "worker",
                                                              1}),
                                         in_virtual_time(Loss{"TheChiefOfPsEasgd", kPsEasgd, 3, "worker", 0})),
                         kNameOfLoss);

TEST_P(SurvivedLoss, IsReportedAndTheOthersFinish) {
  ASSERT_NO_FATAL_FAILURE(lose_by(SIGKILL, kSomeSeconds));
  const ProgramEnd end = program_->wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(program_->processes(), testing::IsEmpty());
  const std::string report = the_victim() + "was killed by signal 9 \\(Killed\\); .* on";
  EXPECT_THAT(end.err, MatchesRegex(the_fault() + report + "\n"));
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
  EXPECT_THAT(end.err, MatchesRegex(the_fault() + the_victim() + "has stopped answering; .* on\n" +
                                    "([0-9]+ of the job's [0-9]+ batches were not trained: .*\n)?"));
  EXPECT_THAT(program_->weights(), SizeIs(kParameters));
}

}  // namespace
}  // namespace syncopate::experiments
