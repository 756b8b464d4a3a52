// The program itself is lost, at any moment of a run: its processes end, and nothing is left. And the folder that it
// writes to.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>

#include "tests/support/faulty_run.h"

namespace syncopate::faults {
namespace {

using experiments::ExitCode;
using testing::IsEmpty;

const std::vector<Mode> kModes{
    {"Ps", {"--mode=ps", "--workers=2", "--servers=1"}},
    {"Ring", {"--mode=allreduce", "--workers=2", "--collective=ring"}},
    {"RingUnderMpirun", {"--mode=allreduce", "--workers=2", "--collective=ring", "--launcher=mpirun"}},
    {"Mpi", {"--mode=allreduce", "--workers=2", "--collective=mpi", "--launcher=mpirun"}}};

class LossOfTheProgram : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    if (testing_support::kSanitized && std::ranges::count(GetParam().flags, "--collective=mpi") > 0) {
      GTEST_SKIP() << testing_support::kWhyNoMpi;
    }
  }

  // Starts the run, and kills the program once `moment` has come.
  void kill_when(const std::function<bool(Program&)>& moment, int steps = 1'000'000, bool may_be_over = false) {
    const Remains remains;
    Program program(small_run(GetParam().flags, steps));
    ASSERT_TRUE(moment(program));
    program.signal(SIGKILL);
    const int code = program.wait().exit_code;
    EXPECT_TRUE(code == 128 + SIGKILL || (code == 0 && may_be_over)) << code;
    // A file that is being written just then stays under its temporary name: nobody is left to finish it.
    EXPECT_THAT(remains.after(program, kDeadline, Remains::Of::kProcesses), IsEmpty());
  }
};

INSTANTIATE_TEST_SUITE_P(Of, LossOfTheProgram, testing::ValuesIn(kModes), kNameOfMode);

TEST_P(LossOfTheProgram, AtItsVeryStartLeavesNothing) {
  kill_when([](Program&) { return true; });
}

TEST_P(LossOfTheProgram, WhileItStartsItsProcessesLeavesNothing) {
  kill_when([](Program& program) {
    return program.wait_until("a process is there", [&] { return !program.processes().empty(); });
  });
}

TEST_P(LossOfTheProgram, WhileTheyJoinLeavesNothing) {
  kill_when([](Program& program) { return program.process("worker", 1) != 0; });
}

TEST_P(LossOfTheProgram, WhileTheyTrainLeavesNothing) {
  kill_when([](Program& program) { return program.wait_until_training(2); });
}

TEST_P(LossOfTheProgram, WhileTheyFinishLeavesNothing) {
  // Under ps the two share 400 batches: one of them makes 200 steps or more.
  const auto finishes = [](Program& program) {
    return program.wait_until("the last step is recorded", [&] {
      const std::string steps = program.steps_csv();
      return steps.find("\n0,0,199,") != std::string::npos || steps.find("\n0,1,199,") != std::string::npos;
    });
  };
  kill_when(finishes, 200, true);
}

// Processes wait for a program that is stopped as long as it lives (tests/faults/standstill_test.cc), and
// no longer.
TEST_P(LossOfTheProgram, WhileItIsStoppedLeavesNothing) {
  kill_when([](Program& program) {
    if (!program.wait_until_training(2)) return false;
    program.signal(SIGSTOP);
    return true;
  });
}

// What is written goes to a folder that is not there any more: the run ends, and says so.
TEST_P(LossOfTheProgram, MayNotFollowThatOfItsFolder) {
  const Remains remains;
  Program program(small_run(GetParam().flags, 600));
  ASSERT_TRUE(program.wait_until_training(2));
  std::filesystem::remove_all(program.output());
  const ProgramEnd end = program.wait(kDeadline + std::chrono::seconds(10));
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kOutput)) << end.err;
  EXPECT_THAT(end.err, testing::MatchesRegex("(.*\n)*run_experiment: [^\n]*cannot be written[^\n]*\n"));
  EXPECT_THAT(remains.after(program, kDeadline), IsEmpty());
}

}  // namespace
}  // namespace syncopate::faults
