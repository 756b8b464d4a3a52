// Processes that are killed in runs that recover: who is left goes on, what was lost comes back, and the run ends well.
// Some of each kind are killed here; the others, in virtual time.
#include <algorithm>
#include <charconv>

#include "experiments/checkpoint/checkpoint_store.h"
#include "tests/faults/failing_run.h"

namespace syncopate::experiments {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Long enough for what happens to fall within it.
constexpr const char* kRecoverySeconds = testing_support::kSanitized ? "--steps=3000" : "--steps=12000";

// The steps that worker `rank` has recorded so far, in the order in which they were heard of.
std::vector<std::int64_t> steps_of(const Program& program, int rank) {
  std::vector<std::int64_t> steps;
  const std::string prefix = fmt::format("0,{},", rank);  // of the first repeat
  for (const std::string& line : testing_support::lines_of(program.steps_csv())) {
    std::int64_t step = 0;
    if (!line.starts_with(prefix)) continue;
    std::from_chars(line.data() + prefix.size(), line.data() + line.size(), step);
    steps.push_back(step);
  }
  return steps;
}

struct LossByKill {
  const char* name;
  Flags mode;
  int workers;
  std::vector<std::pair<const char*, int>> victims;  // role and rank, one after another
  Place place = Place::kHere;
};

LossByKill in_virtual_time(LossByKill loss) {
  loss.place = Place::kVirtualTime;
  return loss;
}

void PrintTo(const LossByKill& loss, std::ostream* out) { *out << loss.name; }
const auto kNameOfRecovered = [](const auto& loss) { return loss.param.name; };

const Flags kElastic{"--mode=allreduce", "--workers=3", "--elastic"};
const Flags kElasticRing{"--mode=allreduce", "--workers=4", "--elastic", "--collective=ring"};
const Flags kElasticTree{"--mode=allreduce", "--workers=4", "--elastic", "--collective=tree", "--transport=sockets"};
const Flags kReplicated{"--mode=ps", "--workers=2", "--servers=2", "--replicas=1"};
const Flags kReplicatedSync{"--mode=ps", "--workers=2", "--servers=1", "--replicas=1", "--consistency=sync"};
const Flags kReplicatedTcp{"--mode=ps", "--workers=2", "--servers=1", "--replicas=1", "--transport=tcp"};

class RecoveredLoss : public testing::TestWithParam<LossByKill> {
 protected:
  // Kills the victims in turn by `signal`, each once the workers have gone on after the one before.
  void lose_by(Program& program, int signal) {
    ASSERT_TRUE(program.wait_until_training(GetParam().workers));
    for (const auto& [role, rank] : GetParam().victims) {
      const pid_t victim = program.process(role, rank);
      ASSERT_NE(victim, 0);
      kill(victim, signal);
      const auto is_reported = [&program, report = fmt::format("{} {} (", role, rank)] {
        return program.errors().find(report) != std::string::npos;
      };
      ASSERT_TRUE(program.wait_until("the loss is reported", is_reported));
    }
  }

  // The same in virtual time: kills each victim so many steps after the one before.
  Flags in_virtual_time(int steps_apart) const {
    Flags flags = training(GetParam().mode, kVirtualSteps) + kInVirtualTime;
    int step = kStruckStep;
    for (const auto& [role, rank] : GetParam().victims) {
      flags.push_back(fault_flag("kill", role, rank, step));
      step += steps_apart;
    }
    return flags;
  }
  bool is_in_virtual_time() const { return GetParam().place == Place::kVirtualTime; }

  void expect_success(Program& program) {
    const ProgramEnd end = program.wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
    for (const auto& [role, rank] : GetParam().victims) {
      EXPECT_THAT(end.err, HasSubstr(fmt::format("{} {} (host ", role, rank))) << "each loss is reported";
    }
    EXPECT_THAT(program.processes(), IsEmpty());
    EXPECT_EQ(program.summary()["outcome"], "completed");
    EXPECT_THAT(program.weights(), SizeIs(kParameters));
    EXPECT_GT(program.summary()["final_test_accuracy"], 0.5);
  }
};

INSTANTIATE_TEST_SUITE_P(
    Of, RecoveredLoss,
    testing::Values(LossByKill{"AWorkerOfDirect", kElastic, 3, {{"worker", 1}}},
                    LossByKill{"TheChiefOfDirect", kElastic, 3, {{"worker", 0}}},
                    LossByKill{"AllButOneOfTheRing", kElasticRing, 4, {{"worker", 2}, {"worker", 0}, {"worker", 3}}},
                    LossByKill{"AServerWithAStandby", kReplicated, 2, {{"server", 0}}},
                    LossByKill{"AServerOverTcp", kReplicatedTcp, 2, {{"server", 0}}}),
    kNameOfRecovered);
INSTANTIATE_TEST_SUITE_P(
    InVirtualTime, RecoveredLoss,
    testing::Values(in_virtual_time(LossByKill{"TwoOfTheTree", kElasticTree, 4, {{"worker", 3}, {"worker", 1}}}),
                    in_virtual_time(LossByKill{
                        "AStandbyAndAnotherServer", kReplicated, 2, {{"standby", 0}, {"server", 1}}}),
                    in_virtual_time(LossByKill{"AServerInStep", kReplicatedSync, 2, {{"server", 0}}})),
    kNameOfRecovered);

TEST_P(RecoveredLoss, ByKillIsReportedAndTheOthersFinish) {
  Program program(is_in_virtual_time() ? in_virtual_time(100) : training(GetParam().mode, kRecoverySeconds));
  if (!is_in_virtual_time()) ASSERT_NO_FATAL_FAILURE(lose_by(program, SIGKILL));
  expect_success(program);
}

TEST(RecoveredSilence, OfAWorkerIsReportedAndTheOthersFinish) {
  Program program(training(kElastic, kRecoverySeconds));
  ASSERT_TRUE(program.wait_until_training(3));
  const pid_t victim = program.process("worker", 1);
  kill(victim, SIGSTOP);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, ContainsRegex(naming("worker 1", victim) + "has stopped answering.*; 2 workers go on"));
  EXPECT_THAT(program.processes(), IsEmpty());
}

class GoingBack : public RecoveredLoss {
 protected:
  // Kills all victims at once when there is a checkpoint and some steps have been made since.
  void lose_after_a_checkpoint(Program& program) {
    ASSERT_TRUE(program.wait_until_training(GetParam().workers));
    std::vector<pid_t> victims;
    for (const auto& [role, rank] : GetParam().victims) victims.push_back(program.process(role, rank));
    const CheckpointStore store(program.output() / "checkpoints");
    ASSERT_TRUE(program.wait_until("two checkpoints are there", [&] { return store.steps().size() > 1; }));
    const std::size_t before = steps_of(program, 0).size();
    ASSERT_TRUE(program.wait_until("training goes on", [&] { return steps_of(program, 0).size() > before; }));
    for (const pid_t victim : victims) kill(victim, SIGKILL);
    ASSERT_TRUE(program.wait_until("they go back",
                                   [&] { return program.errors().find("all go back to ") != std::string::npos; }));
  }
};

// 2500 steps, of a millisecond and more each.
constexpr const char* kSlowSteps = "--steps=2500";
const Flags kPsWithCheckpoints{"--mode=ps", "--workers=2", "--servers=2", "--straggler=all:+1",
                               "--checkpoint-every=100"};
const Flags kReplicatedWithCheckpoints{"--mode=ps", "--workers=2", "--replicas=1", "--straggler=all:+1",
                                       "--checkpoint-every=100"};

INSTANTIATE_TEST_SUITE_P(Of, GoingBack,
                         testing::Values(LossByKill{
                             "AServerAndAWorker", kPsWithCheckpoints, 2, {{"worker", 1}, {"server", 0}}}),
                         kNameOfRecovered);
INSTANTIATE_TEST_SUITE_P(
    InVirtualTime, GoingBack,
    testing::Values(in_virtual_time(LossByKill{"AServer", kPsWithCheckpoints, 2, {{"server", 1}}}),
                    in_virtual_time(LossByKill{"BothServers", kPsWithCheckpoints, 2, {{"server", 0}, {"server", 1}}}),
                    in_virtual_time(LossByKill{
                        "AServerAndItsStandby", kReplicatedWithCheckpoints, 2, {{"server", 0}, {"standby", 0}}}),
                    in_virtual_time(LossByKill{
                        "AStandbyAndItsServer", kReplicatedWithCheckpoints, 2, {{"standby", 0}, {"server", 0}}})),
    kNameOfRecovered);

TEST_P(GoingBack, LosesTheStepsSinceTheCheckpointAndNoMore) {
  Program program(is_in_virtual_time() ? in_virtual_time(0) : training(GetParam().mode, kSlowSteps));
  if (!is_in_virtual_time()) ASSERT_NO_FATAL_FAILURE(lose_after_a_checkpoint(program));
  expect_success(program);
  EXPECT_THAT(program.errors(), HasSubstr("all go back to "));
}

// In step, with nobody left out, all comes as it would have.
TEST(GoingBackInStep, ComesToTheSameWeights) {
  Flags flags = kPsWithCheckpoints;
  flags.push_back("--consistency=sync");
  Program unbroken(training(flags, kSlowSteps));
  ASSERT_EQ(unbroken.wait().exit_code, 0) << unbroken.errors();
  Program program(training(flags, kSlowSteps));
  const CheckpointStore store(program.output() / "checkpoints");
  ASSERT_TRUE(program.wait_until("two checkpoints are there", [&] { return store.steps().size() > 1; }));
  for (const int rank : {0, 1}) kill(program.process("server", rank), SIGKILL);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("all go back to "));
  EXPECT_EQ(program.weights(), unbroken.weights());
}

class ComingBack : public testing::TestWithParam<LossByKill> {};

INSTANTIATE_TEST_SUITE_P(
    Of, ComingBack,
    testing::Values(LossByKill{"ToDirect", {"--mode=allreduce", "--workers=2", "--elastic"}, 2, {}},
                    LossByKill{"ToPsAsync", {"--mode=ps", "--workers=2", "--servers=2"}, 2, {}}),
    kNameOfRecovered);
INSTANTIATE_TEST_SUITE_P(
    InVirtualTime, ComingBack,
    testing::Values(in_virtual_time(LossByKill{
                        "ToARing", {"--mode=allreduce", "--workers=3", "--elastic", "--collective=ring"}, 3, {}}),
                    in_virtual_time(LossByKill{
                        "ToPsBounded", {"--mode=ps", "--workers=3", "--consistency=bounded:2"}, 3, {}}),
                    in_virtual_time(LossByKill{"ToPsSync", {"--mode=ps", "--workers=2", "--consistency=sync"}, 2, {}})),
    kNameOfRecovered);

// It takes up where the others are: none of its steps comes twice, and together they train the job: all of it, but for
// what worker 1 had not recorded when it was lost. Steps with the same number are of the same batch where workers wait
// for each other, and all then end with the last.
TEST_P(ComingBack, AWorkerTakesPartAgain) {
  const bool here = GetParam().place == Place::kHere;
  const std::size_t steps_of_each = !here ? 600 : testing_support::kSanitized ? 6000 : 12000;
  Flags flags = training(GetParam().mode, fmt::format("--steps={}", steps_of_each));
  flags.push_back("--respawn=0");
  if (!here) flags = flags + kInVirtualTime + Flags{fault_flag("kill", "worker", 1)};
  Program program(flags);
  std::size_t before = kStruckStep;
  if (here) {
    ASSERT_TRUE(program.wait_until_training(GetParam().workers));
    kill(program.process("worker", 1), SIGKILL);
    ASSERT_TRUE(program.wait_until("worker 1 is back",
                                   [&] { return program.errors().find("worker 1 is back") != std::string::npos; }));
    before = steps_of(program, 1).size();
    ASSERT_TRUE(program.wait_until("worker 1 trains", [&] { return steps_of(program, 1).size() > before; }));
  }
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("worker 1 is back"));
  EXPECT_GT(steps_of(program, 1).size(), before) << "worker 1 trains again";
  EXPECT_THAT(program.processes(), IsEmpty());
  std::vector<std::int64_t> steps = steps_of(program, 1);
  EXPECT_TRUE(std::ranges::is_sorted(steps));
  EXPECT_EQ(std::ranges::adjacent_find(steps), steps.end()) << "a step was recorded twice";
  if (GetParam().name == std::string("ToPsAsync") || GetParam().name == std::string("ToPsBounded")) {
    std::size_t recorded = 0;
    for (int worker = 0; worker < GetParam().workers; ++worker) recorded += steps_of(program, worker).size();
    const std::size_t asked = steps_of_each * static_cast<std::size_t>(GetParam().workers);
    EXPECT_LE(recorded, asked);
    EXPECT_GT(static_cast<double>(recorded), 0.9 * static_cast<double>(asked));
    return;
  }
  EXPECT_EQ(steps.back(), steps_of(program, 0).back());
}

}  // namespace
}  // namespace syncopate::experiments
