// Workers that are stopped while the others wait for them in an allreduce, here or in virtual time.
#include "tests/faults/failing_run.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::MatchesRegex;
using testing::SizeIs;
using testing_support::lines_of;

struct Wire {
  const char* name;
  Flags mode;
  Place place = Place::kHere;
};

void PrintTo(const Wire& wire, std::ostream* out) { *out << wire.name; }

// Where the others wait, and for whom; of what the stopped worker said last, little is known.
const std::string kStalled =
    "stalled for [0-9.]+ s: step [0-9]+, bucket [0-9]+ of [0-9]+ \\(all_reduce, [0-9.]+ k?B\\): ranks 0 and 2 wait; "
    "missing: rank 1 \\([a-z ]+ at step [0-9]+, last heard [0-9.]+ s ago\\)";

class StalledWorkers : public testing::TestWithParam<Wire> {
 protected:
  void SetUp() override {
    if (testing_support::kSanitized && GetParam().mode.back() == "--collective=mpi") {
      GTEST_SKIP() << testing_support::kWhyNoMpi;
    }
  }

  Flags flags(const std::string& amount) const {
    Flags flags = training(GetParam().mode, amount);
    flags.insert(flags.end(), {"--workers=3", "--bucket-bytes=40kB", "--warmup-steps=0",
                               "--straggler=0:+2",  // so that a run lasts for two seconds, and is no burden
                               fmt::format("--stall-warning={}s", kTimeoutSeconds / 6.0)});
    return flags;
  }
  // The same, of which worker 1 is stopped for so long.
  Flags stopped_in_virtual_time(const std::string& amount, const std::string& length) const {
    return flags(amount) + kInVirtualTime + Flags{fmt::format("--fault=stop:worker1@step{}+{}", kStruckStep, length)};
  }
  bool is_here() const { return GetParam().place == Place::kHere; }
};

INSTANTIATE_TEST_SUITE_P(
    Over, StalledWorkers,
    testing::Values(Wire{"Direct", {"--mode=allreduce"}},
                    Wire{"TheRing", {"--mode=allreduce", "--collective=ring"}, Place::kVirtualTime},
                    Wire{"OpenMpi", {"--mode=allreduce", "--launcher=mpirun", "--collective=mpi"}}),
    [](const auto& wire) { return wire.param.name; });

// Another run of the same job that nobody has disturbed ends with the same weights.
TEST_P(StalledWorkers, AreNamedAndWhenOneGoesOnTheRunDoesToo) {
  const std::string amount = is_here() ? "--steps=1000" : "--steps=300";
  const auto the_stop = fmt::format("{}s", kTimeoutSeconds / 3);
  Program program(is_here() ? flags(amount) : stopped_in_virtual_time(amount, the_stop));
  if (is_here()) {
    const pid_t victim = program.process("worker", 1);
    ASSERT_TRUE(program.wait_until_training(3));
    kill(victim, SIGSTOP);
    const bool is_warned = program.wait_until("the warning", [&] { return program.errors().starts_with("stalled"); });
    kill(victim, SIGCONT);
    ASSERT_TRUE(is_warned);
  }
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  std::vector<std::string> lines = lines_of(end.err);
  if (!is_here()) {
    EXPECT_THAT(lines.front(), MatchesRegex("fault: stopped worker 1 for .* at step 150"));
    lines.erase(lines.begin());
  }
  EXPECT_THAT(lines, ElementsAre(MatchesRegex(kStalled), MatchesRegex("went on after [0-9.]+ s: step .*")));
  EXPECT_EQ(program.summary()["outcome"], "completed");
  ASSERT_THAT(program.summary()["events"], SizeIs(2));
  EXPECT_THAT(program.summary()["events"][0].get<std::string>(), MatchesRegex(kStalled));
  Program undisturbed(is_here() ? flags(amount) : flags(amount) + kInVirtualTime);
  EXPECT_EQ(undisturbed.wait().exit_code, 0);
  EXPECT_THAT(program.weights(), SizeIs(kParameters));
  EXPECT_TRUE(program.weights() == undisturbed.weights());
}

TEST_P(StalledWorkers, AreNamedInTheVerdictWithStepBucketAndOperation) {
  Program program(is_here() ? flags(kWithoutEnd) : stopped_in_virtual_time(kWithoutEnd, "86400s"));
  std::string victim = naming_in_virtual_time("worker 1");
  if (is_here()) {
    const pid_t pid = program.process("worker", 1);
    ASSERT_TRUE(program.wait_until_training(3));
    kill(pid, SIGSTOP);
    victim = naming("worker 1", pid);
  }
  expect_verdict(program, ExitCode::kTimeout,
                 victim + "has stopped answering; " + kStalled + "; this mode needs every worker",
                 is_here() ? "" : "fault: stopped worker 1 [^\n]*\n");
}

}  // namespace
}  // namespace syncopate::experiments
