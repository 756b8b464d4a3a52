// What becomes of a run when the program itself is told to end, or killed.
#include "tests/faults/failing_run.h"

namespace syncopate::experiments {
namespace {

struct Launched {
  const char* name;
  Flags mode;
};

void PrintTo(const Launched& launched, std::ostream* out) { *out << launched.name; }

class EndOfTheProgram : public testing::TestWithParam<Launched> {
 protected:
  void SetUp() override {
    if (testing_support::kSanitized && std::ranges::count(GetParam().mode, "--collective=mpi") > 0) {
      GTEST_SKIP() << testing_support::kWhyNoMpi;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(
    Of, EndOfTheProgram,
    testing::Values(Launched{"Ring", {"--mode=allreduce", "--workers=2"}},
                    Launched{"Ps", {"--mode=ps", "--consistency=async", "--workers=2", "--servers=1"}},
                    Launched{"RingUnderMpirun", {"--mode=allreduce", "--workers=2", "--launcher=mpirun"}},
                    Launched{"Mpi", {"--mode=allreduce", "--workers=2", "--launcher=mpirun", "--collective=mpi"}}),
    [](const auto& launched) { return launched.param.name; });

TEST_P(EndOfTheProgram, ByCtrlCIsOrderlyAndKeepsWhatWasRecorded) {
  Program program(training(GetParam().mode));
  ASSERT_TRUE(program.wait_until_training(2));
  const std::string recorded = program.steps_csv();
  program.signal(SIGINT);
  expect_verdict(program, ExitCode::kInterrupted, "interrupted at step [0-9]+; what was recorded is kept");
  EXPECT_THAT(program.steps_csv(), testing::StartsWith(recorded));
}

TEST_P(EndOfTheProgram, ByKillLeavesNothingBehind) {
  Program program(training(GetParam().mode));
  ASSERT_TRUE(program.wait_until_training(2));
  const std::string recorded = program.steps_csv();
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait().exit_code, 128 + SIGKILL);
  EXPECT_TRUE(program.all_gone_within(kDeadline));
  EXPECT_THAT(program.steps_csv(), testing::StartsWith(recorded));
}

// The kernel sees to it at once: nobody waits for the timeout.
TEST(EndOfTheProgramAlone, ByKillEndsItsProcessesLongBeforeTheirTimeout) {
  constexpr int kHour = 3600;
  for (const char* launcher : {"--launcher=local", "--launcher=mpirun"}) {
    Program program(training({"--mode=ps", "--workers=2", "--servers=1", launcher}, kWithoutEnd, kHour));
    ASSERT_TRUE(program.wait_until_training(2));
    program.signal(SIGKILL);
    EXPECT_EQ(program.wait().exit_code, 128 + SIGKILL);
    EXPECT_TRUE(program.all_gone_within(kDeadline)) << launcher;
  }
}

}  // namespace
}  // namespace syncopate::experiments
