// A run of which something stands still for longer than its timeout, and nobody is to blame: a person has stopped
// run_experiment (Ctrl-Z), or all of it.
#include "tests/faults/failing_run.h"

namespace syncopate::experiments {
namespace {

struct MemberStatus {
  const char* name;
  Flags mode;
  bool is_synchronous;
};

void PrintTo(const MemberStatus& standing, std::ostream* out) { *out << standing.name; }

class Standstill : public testing::TestWithParam<MemberStatus> {
 protected:
  // Short, since it is slept through twice.
  static constexpr int kShort = 3 * testing_support::kSlowness;

  // It trains for four seconds on any machine, so that it still does when it is seen to.
  Flags run() const { return training(GetParam().mode, "--epochs=10", kShort) + Flags{"--straggler=all:+2"}; }

  // Stops all of `pids` for more than two timeouts, in which nothing of the run ends, and lets them go on.
  static void stop_for_long(const Program& program, const std::vector<pid_t>& pids) {
    const std::size_t processes = program.processes().size();
    for (const pid_t pid : pids) kill(pid, SIGSTOP);
    EXPECT_FALSE(program.all_gone_within(std::chrono::seconds(2 * kShort + 1)));
    EXPECT_EQ(program.processes().size(), processes);
    for (const pid_t pid : pids) kill(pid, SIGCONT);
  }

  void expect_as_if_undisturbed(Program& program) const {
    const ProgramEnd end = program.wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
    EXPECT_EQ(end.err, "");
    EXPECT_THAT(program.weights(), testing::SizeIs(kParameters));
    // Points that training has passed meanwhile may be left out; how good it is in the end is known.
    EXPECT_TRUE(program.summary()["final_test_accuracy"].is_number());
    if (!GetParam().is_synchronous) return;
    Program undisturbed(run());
    EXPECT_EQ(undisturbed.wait().exit_code, 0);
    EXPECT_TRUE(program.weights() == undisturbed.weights());
  }
};

INSTANTIATE_TEST_SUITE_P(
    Of, Standstill,
    testing::Values(
        MemberStatus{"PsSync", {"--mode=ps", "--consistency=sync", "--workers=2", "--servers=2"}, true},
        MemberStatus{"PsAsyncOverTcp", {"--mode=ps", "--workers=2", "--servers=1", "--transport=tcp"}, false},
        MemberStatus{"Ring", {"--mode=allreduce", "--workers=3"}, true},
        MemberStatus{"Direct", {"--mode=allreduce", "--workers=2", "--collective=direct"}, true},
        MemberStatus{"PsUnderMpirun", {"--mode=ps", "--workers=2", "--servers=1", "--launcher=mpirun"}, false}),
    [](const auto& standing) { return standing.param.name; });

TEST_P(Standstill, OfRunExperimentIsSatOut) {
  Program program(run());
  ASSERT_TRUE(program.wait_until_training(2));
  stop_for_long(program, {program.pid()});
  expect_as_if_undisturbed(program);
}

TEST_P(Standstill, OfEverythingIsSatOut) {
  Program program(run());
  ASSERT_TRUE(program.wait_until_training(2));
  std::vector<pid_t> all{program.pid()};
  for (const testing_support::RunningProcess& process : program.processes()) all.push_back(process.pid);
  stop_for_long(program, all);
  expect_as_if_undisturbed(program);
}

}  // namespace
}  // namespace syncopate::experiments
